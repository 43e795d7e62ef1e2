#include "reports/exchange/nccl_log.h"

#include "harness/core/error.h"
#include "harness/core/text.h"
#include "harness/figures/mentions.h"
#include "reports/exchange/nccl_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string_view>

namespace assay::report {

namespace {

// A row, or the first columns of one whose rest comes in later lines: nccl-tests prints what is left of the times and
// each half at once, and other programs print between them.
struct Cells {
  std::vector<std::string> words;  // by column; empty: blank in the table
  int line = 0;
  std::string text;
};

class LogReader {
 public:
  explicit LogReader(const std::string& file) : file_(file) { log_.tests.emplace_back(); }

  NcclLog read(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++number_;
      if (line.ends_with('\r')) line.pop_back();
      try {
        read_line(line.find('\x1b') == line.npos ? line : visible_text(line));
      } catch (const UsageError& error) {
        throw UsageError(fmt::format("{}: line {}: {}", file_, number_, error.what()));
      }
    }
    give_up_pending();
    std::erase_if(log_.tests, [](const NcclTest& test) { return test.rows.empty() && !test.failure; });
    return std::move(log_);
  }

 private:
  NcclTest& test() { return log_.tests.back(); }

  void not_read(int line, const std::string& text) {
    if (log_.not_read++ == 0) log_.first_not_read = fmt::format("line {}: {}", line, one_line(text));
  }

  void read_line(std::string line) {
    if (line.find("rccl-tests: Version ") != line.npos) return;
    strip_prefixes(line, log_.time);
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == line.npos) return;
    if (line[first] == '#') return read_comment(line.substr(first));
    const bool debug = line.find("NCCL INFO") != line.npos || line.find("NCCL TRACE") != line.npos;
    if (const std::size_t at = line.find("NCCL version "); at != line.npos && log_.version.empty())
      log_.version = words_in(line.substr(at + 13)).empty() ? "" : words_in(line.substr(at + 13)).front();
    if (tells_failure(line)) {
      give_up_pending();
      if (!test().failure) test().failure.emplace(Status::error, line.substr(first));
      return;
    }
    if (NcclColumns::is_header(words_in(line))) return read_header(line);
    if (read_row(line) || debug) return;
    if (const std::string program = program_in(line); !program.empty()) {
      next_program_ = program;
      if (test().rows.empty() && !test().failure) test().collective = program;
      return;
    }
    if (line.find("NCCL version ") == line.npos) not_read(number_, line.substr(first));
  }

  // "n1: Test NCCL failure common.cu:961 'unhandled cuda error'"
  static bool tells_failure(const std::string& line) {
    const std::size_t test = line.find("Test ");
    return test != line.npos && line.find("fail", test) != line.npos;
  }

  // "all_reduce" in "/opt/nccl-tests/build/all_reduce_perf -b 8"; empty if there is none.
  static std::string program_in(const std::string& line) {
    constexpr std::string_view suffix = "_perf";
    for (std::size_t at = 0; (at = line.find(suffix, at)) != line.npos; at += suffix.size()) {
      const std::size_t end = at + suffix.size();
      std::size_t begin = at;
      const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
      while (begin > 0 && in_name(line[begin - 1])) --begin;
      if (begin < at && (end == line.size() || !in_name(line[end]))) return line.substr(begin, at - begin);
    }
    return {};
  }

  void read_comment(const std::string& line) {
    const NcclWords words = words_in(line.substr(1));
    if (words.empty()) return;
    if (NcclColumns::is_header(words)) return read_header(" " + line.substr(1));
    const auto has = [&](std::string_view text) { return line.find(text) != line.npos; };
    if (words.front() == "Rank") return read_rank(words, line);
    if (has("out-of-place") || has("in-place")) {
      in_place_first_ = line.find("in-place") < line.find("out-of-place");
    } else if (line.find('(') != line.npos && line.find(')') != line.npos && words.front().front() == '(') {
      columns_.read_units(" " + line.substr(1));
    } else if (has("Collective test starting") || has("nThread") || has("Using devices") || has("tests version")) {
      begin_test();
      if (const std::string program = program_in(line); !program.empty()) test().collective = program;
      read_banner(words);
    } else if (has("Blocking Enabled")) {
      test().conditions["blocking"] = "1";
    } else if (has("Collective test concluded")) {
      give_up_pending();
      if (test().collective.empty()) test().collective = program_in(line);
      concluded_ = true;
    } else if (has("FAILED")) {
      give_up_pending();
      read_failure(line);
    } else if (has("Out of bounds") || has("Avg bus bandwidth")) {
      give_up_pending();
    }
  }

  // "# nThread 1 nGpus 8 ... agg iters: 1 validation: 1 graph: 0", "# nccl-tests version 2.17 nccl-library=22707"
  void read_banner(const NcclWords& words) {
    double per_process = 1;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::string& next = words[i + 1];
      if (words[i] == "nThread" || words[i] == "nGpus") per_process *= number_in<double>(next).value_or(0);
      if ((words[i] == "graph:" || words[i] == "unalign:") && next != "0")
        test().conditions[words[i].substr(0, words[i].size() - 1)] = next;
      if (words[i] == "iters:" && i > 0 && words[i - 1] == "agg" && next != "1")
        test().conditions["aggregated_iterations"] = next;
    }
    if (const int ranks = ranks_of_process(per_process, "nThread x nGpus"); ranks > 1 && test().world.known.empty())
      test().world.ranks = ranks;
    constexpr std::string_view library = "nccl-library=";
    for (const std::string& word : words)
      if (const auto code = word.starts_with(library) ? number_in<int>(word.substr(library.size())) : std::nullopt)
        log_.version = nccl_version_text(*code);
  }

  // "Rank 0 Group 0 Pid 21 on worker-0 device 0 [0x35] Tesla T4"
  void read_rank(const NcclWords& words, const std::string& line) {
    if (!test().rows.empty() || test().failure) begin_test();
    RankResult rank;
    std::size_t i = 1;
    rank.rank = words.size() > 1 ? number_in<int>(words[1]).value_or(-1) : -1;
    while (i < words.size() && words[i] != "on") ++i;
    if (rank.rank < 0 || rank.rank >= max_ranks || i + 1 >= words.size()) return not_read(number_, line);
    rank.host = words[i + 1];
    for (i += 2; i < words.size() && !words[i].starts_with('['); ++i) continue;
    if (i < words.size()) {
      // "[0x35]" is only the bus; "[0000:35:00]" is an address.
      const std::string address = words[i].substr(1, words[i].size() - 2);
      if (address.find(':') != address.npos) rank.pci = address;
      for (++i; i < words.size(); ++i) rank.device += (rank.device.empty() ? "" : " ") + words[i];
    }
    std::vector<RankResult>& known = test().world.known;
    if (std::any_of(known.begin(), known.end(), [&](const RankResult& one) { return one.rank == rank.rank; })) {
      log_.remarks.push_back(fmt::format("rank {} comes twice: several tests print into this log", rank.rank));
      return;
    }
    known.push_back(std::move(rank));
  }

  void begin_test() {
    give_up_pending();
    if (test().rows.empty() && !test().failure && !concluded_) return;
    log_.tests.emplace_back();
    concluded_ = false;
    test().collective = std::exchange(next_program_, {});
  }

  void read_header(const std::string& line) {
    give_up_pending();
    if (!test().rows.empty()) {
      // Only the table is another: it has the ranks of the one before.
      NcclTest next;
      next.world = test().world, next.conditions = test().conditions;
      next.collective = next_program_.empty() ? test().collective : std::exchange(next_program_, {});
      next.table = test().table + 1;
      log_.tests.push_back(std::move(next));
    } else if (log_.tests.size() > 1 && test().collective.empty()) {
      test().table = log_.tests[log_.tests.size() - 2].table + 1;
    }
    columns_.read(line);
  }

  void read_failure(const std::string& line) {
    const std::size_t colon = line.find(':');
    const NcclWords after = words_in(colon == line.npos ? "" : line.substr(colon + 1));
    const auto count = after.empty() ? std::nullopt : number_in<double>(after.front());
    if (line.find("Out of bounds") != line.npos)
      test().out_of_bounds = count ? fmt::format("{:.0f} values out of bounds", *count) : "values out of bounds";
    else if (!test().failure)
      test().failure.emplace(Status::failed, line.substr(line.find_first_not_of("# \t")));
  }

  // Whether the words from `from` on are those of the columns [begin, end). NcclColumns without a reduction or a root
  // may be blank: then the next word is the next column's. Appends the cells.
  bool match(const NcclWords& words, std::size_t from, std::size_t begin, std::size_t end, bool may_glue, int blanks,
             std::vector<std::string>& cells, std::size_t& used) const {
    std::size_t at = from;
    for (std::size_t c = begin; c < end; ++c) {
      const NcclColumn& column = columns_.all()[c];
      const bool can_be_blank = column.kind == NcclColumn::Kind::redop || column.kind == NcclColumn::Kind::root;
      const bool last = may_glue && c + 1 == end;
      if (at < words.size() && fits(column, words[at], last)) {
        cells.push_back(words[at++]);
        if (column.kind == NcclColumn::Kind::timestamp && at < words.size()) ++at;
      } else if (can_be_blank && blanks > 0) {
        --blanks;
        cells.emplace_back();
      } else {
        return false;
      }
    }
    used = at - from;
    return true;
  }

  // The columns after the first `have` up to which a part may go: each half, the last with what follows it.
  std::vector<std::size_t> part_ends(std::size_t have) const {
    std::vector<std::size_t> ends;
    const std::vector<NcclColumn>& all = columns_.all();
    for (std::size_t c = have; c < all.size(); ++c)
      if (c + 1 == all.size() || (all[c].half >= 0 && all[c + 1].half != all[c].half && all[c + 1].half >= 0))
        ends.push_back(c + 1);
    return ends;
  }

  bool read_row(const std::string& line) {
    const NcclWords words = words_in(line);
    const std::size_t leading = columns_.leading(), all = columns_.all().size();
    // A whole row, behind whatever is before it.
    std::size_t width = all;
    for (const NcclColumn& column : columns_.all()) width += column.kind == NcclColumn::Kind::timestamp;
    for (int blanks = 0; blanks <= 2; ++blanks) {
      const std::size_t wanted = width - static_cast<std::size_t>(blanks);
      std::vector<std::string> cells;
      std::size_t used = 0;
      if (words.size() < wanted || !match(words, words.size() - wanted, 0, all, false, blanks, cells, used) ||
          used != wanted)
        continue;
      give_up_pending();
      add_row({std::move(cells), number_, line});
      return true;
    }
    return begin_row(words, line, leading) || continue_row(words);
  }

  // The first columns of a row, perhaps with a half, before a text of another program.
  bool begin_row(const NcclWords& words, const std::string& line, std::size_t leading) {
    if (leading < 3) return false;
    constexpr std::size_t max_prefix = 3;
    for (std::size_t from = 0; from < std::min(words.size(), max_prefix); ++from)
      for (int blanks = 0; blanks <= 2; ++blanks) {
        std::vector<std::string> cells;
        std::size_t used = 0;
        if (!match(words, from, 0, leading, true, blanks, cells, used)) continue;
        give_up_pending();
        pending_ = Cells{std::move(cells), number_, line};
        take_parts(words, from + used, only_in_place(line, words, from + used));
        return true;
      }
    return false;
  }

  // A gap as wide as a half is left where a test has no results out of place.
  bool only_in_place(const std::string& line, const NcclWords& words, std::size_t next) const {
    if (columns_.halves() != 2 || next == 0 || next >= words.size()) return false;
    std::size_t at = 0, end = 0;
    for (std::size_t i = 0; i <= next; ++i) {
      if (i > 0) end = at + words[i - 1].size();
      at = line.find(words[i], end);
    }
    constexpr std::size_t gap = 24;
    return at != line.npos && at - end >= gap;
  }

  void take_parts(const NcclWords& words, std::size_t from, bool skip_half) {
    if (skip_half) {
      const std::vector<std::size_t> ends = part_ends(pending_->words.size());
      pending_->words.resize(ends.front());
    }
    for (const std::size_t end : part_ends(pending_->words.size())) {
      std::vector<std::string> cells;
      std::size_t used = 0;
      if (!match(words, from, pending_->words.size(), end, true, 0, cells, used)) break;
      pending_->words.insert(pending_->words.end(), cells.begin(), cells.end());
      from += used;
    }
    if (pending_->words.size() == columns_.all().size()) add_row(*std::exchange(pending_, std::nullopt));
  }

  bool continue_row(const NcclWords& words) {
    if (!pending_) return false;
    const std::size_t have = pending_->words.size(), all = columns_.all().size();
    take_parts(words, 0, false);
    if (!pending_ || pending_->words.size() > have) return true;
    // The rest of the row behind a text.
    const std::size_t rest = all - have;
    std::vector<std::string> cells;
    std::size_t used = 0;
    if (words.size() < rest || !match(words, words.size() - rest, have, all, false, 0, cells, used)) return false;
    pending_->words.insert(pending_->words.end(), cells.begin(), cells.end());
    add_row(*std::exchange(pending_, std::nullopt));
    return true;
  }

  // A row of which a part never came: its whole halves count.
  void give_up_pending() {
    if (!pending_) return;
    Cells cells = *std::exchange(pending_, std::nullopt);
    not_read(cells.line, cells.text.substr(cells.text.find_first_not_of(" \t")));
    if (cells.words.size() <= columns_.leading()) return;
    cells.words.resize(columns_.all().size());
    add_row(cells);
  }

  void add_row(const Cells& cells) {
    NcclRow row;
    row.halves.resize(static_cast<std::size_t>(std::max(columns_.halves(), 1)));
    std::vector<bool> any(row.halves.size(), false);
    for (std::size_t i = 0; i < row.halves.size(); ++i)
      row.halves[i].place = (i == 0) != in_place_first_ ? "out_of_place" : "in_place";
    for (std::size_t c = 0; c < cells.words.size(); ++c) {
      const NcclColumn& column = columns_.all()[c];
      const std::string& word = cells.words[c];
      if (word.empty()) continue;
      if (column.half < 0) {
        if (column.name == "size") row.bytes = column.scale * number_in<double>(word).value_or(0);
        if (column.name == "type") row.type = word;
        if (column.name == "redop") row.redop = word;
        if (column.name == "root") row.root = std::to_string(number_in<std::int64_t>(word, true).value_or(-1));
        if (column.kind == NcclColumn::Kind::other)
          for (NcclHalf& half : row.halves) half.columns.emplace_back(column.name, word);
        continue;
      }
      NcclHalf& half = row.halves[static_cast<std::size_t>(column.half)];
      any[static_cast<std::size_t>(column.half)] = true;
      const auto value = number_in<double>(word, true);
      if (column.name == "algbw" && value) half.algbw = column.scale * *value;
      if (column.name == "busbw" && value) half.busbw = column.scale * *value;
      if (column.kind == NcclColumn::Kind::wrong && value) {
        // Without a header, an error such as 0e+00 or 2e-07 is rounding, of tables before version 2.13.
        const bool rounding = !columns_.has_header() && *value < 1 && word != "0";
        if (!rounding) half.wrong = value;
      }
      if (column.kind == NcclColumn::Kind::other) half.columns.emplace_back(column.name, word);
    }
    NcclRow kept = row;
    kept.halves.clear();
    for (std::size_t i = 0; i < row.halves.size(); ++i)
      if (any[i]) kept.halves.push_back(std::move(row.halves[i]));
    test().rows.push_back(std::move(kept));
  }

  std::string file_;
  NcclLog log_;
  NcclColumns columns_;
  bool in_place_first_ = false, concluded_ = false;
  std::string next_program_;  // that a line names before its test begins
  std::optional<Cells> pending_;
  int number_ = 0;
};

}  // namespace

int ranks_of_process(double threads_times_gpus, const std::string& place) {
  if (!(threads_times_gpus >= 1 && threads_times_gpus <= max_ranks) ||
      std::trunc(threads_times_gpus) != threads_times_gpus)
    throw UsageError(
        fmt::format("{} is {:g}: must be a whole number from 1 to {}", place, threads_times_gpus, max_ranks));
  return static_cast<int>(threads_times_gpus);
}

std::string nccl_version_text(double code) {
  if (!(code >= 1'000 && code < 1e6)) return fmt::format("{:g}", code);
  const auto number = static_cast<std::int64_t>(code);
  const std::int64_t thousand = number < 10'000 ? 1'000 : 10'000;  // before version 2.9
  return fmt::format("{}.{}.{}", number / thousand, number % thousand / 100, number % 100);
}

NcclLog read_nccl_log(const std::string& text, const std::string& file) { return LogReader(file).read(text); }

}  // namespace assay::report
