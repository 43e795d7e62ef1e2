#include "reports/exchange/nccl_columns.h"

#include "harness/core/error.h"
#include "harness/core/moment.h"
#include "harness/core/text.h"
#include "harness/figures/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <sstream>

namespace assay::report {

namespace {

NcclColumn nccl_column(std::string word) {
  NcclColumn column;
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  if (word.size() > 1 && word.front() == '#') word.erase(0, 1);
  word = word.substr(0, word.find('('));
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  using Kind = NcclColumn::Kind;
  column.name = word;
  if (is({"size", "bytes"})) column.kind = Kind::integer, column.name = "size";
  if (is({"count", "elements", "nelem"})) column.kind = Kind::integer, column.name = "count";
  if (is({"type", "datatype", "dtype"})) column.kind = Kind::text, column.name = "type";
  if (is({"redop", "op"})) column.kind = Kind::redop, column.name = "redop";
  if (is({"root"})) column.kind = Kind::root;
  if (is({"time", "cputime", "latency"})) column.kind = Kind::number, column.scale = 1e-6, column.name = "time";
  if (is({"algbw", "alg_bw"})) column.kind = Kind::number, column.scale = 1e9, column.name = "algbw";
  if (is({"busbw", "bus_bw"})) column.kind = Kind::number, column.scale = 1e9, column.name = "busbw";
  if (is({"wrong", "nwrong"})) column.kind = Kind::wrong, column.name = "wrong";
  if (is({"error", "errors", "max_error"})) column.kind = Kind::error, column.name = "wrong";
  if (is({"timestamp"})) column.kind = Kind::timestamp;
  return column;
}

void set_unit(NcclColumn& column, std::string unit) {
  if (column.kind != NcclColumn::Kind::number && column.name != "size") return;
  unit = unit.substr(1, unit.find(')') - 1);
  const auto known = base_unit(unit);
  const bool bytes = column.name != "time";
  if (!known || (column.name == "size" ? known->name != "B"
                 : bytes               ? known->name != "B/s" && known->name != "bit/s"
                                       : known->name != "s"))
    throw UsageError(fmt::format("the unit {} of the column {} is not known", in_quotes(unit), column.name));
  column.scale = known->scale / (known->name == "bit/s" ? 8 : 1);
}

}  // namespace

NcclWords words_in(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

bool strip_prefix(std::string& line, std::string& time) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == line.npos || line[first] == '#') return false;
  const std::size_t blank = std::min(line.find_first_of(" \t", first), line.size());
  std::string word = line.substr(first, blank - first);
  std::size_t cut = 0;
  if (line[first] == '[' || line[first] == '(') {
    const std::size_t close = line.find(line[first] == '[' ? ']' : ')', first);
    if (close == line.npos) return false;
    const std::string inner = line.substr(first + 1, close - first - 1);
    const auto moment = read_moment(inner);
    if (moment && time.empty()) time = inner;
    cut = close + 1;
    if (line.compare(cut, 5, "<stdo") == 0 || line.compare(cut, 5, "<stde") == 0) cut = line.find('>', cut) + 1;
    if (cut < line.size() && line[cut] == ':') ++cut;
  } else if (read_moment(word) && word.find_first_of("-/") != word.npos) {
    // A date alone has its time in the next word.
    cut = blank;
    const std::size_t next = line.find_first_not_of(' ', blank);
    const std::size_t end = std::min(line.find(' ', std::min(next, line.size())), line.size());
    if (word.size() <= 10 && next != line.npos && read_moment(word + " " + line.substr(next, end - next))) {
      word += " " + line.substr(next, end - next);
      cut = end;
    }
    if (time.empty()) time = word;
  } else if (word == "stdout" || word == "stderr") {
    cut = blank;  // of a container's log: "stdout F "
    if (line.compare(cut, 3, " F ") == 0 || line.compare(cut, 3, " P ") == 0) cut += 3;
  } else if (std::count(word.begin(), word.end(), ':') == 2 && word.find_first_not_of("0123456789:.,") == word.npos) {
    cut = blank;  // "12:00:01.5"
  } else if (word.size() > 1 && word.ends_with(':') && blank < line.size() &&
             std::count(word.begin(), word.end(), ':') == 1) {
    cut = blank;
  } else if (line.compare(blank, 3, " | ") == 0) {
    cut = blank + 3;
  } else if (const std::size_t colon = line.find_first_not_of("0123456789", blank + 1);
             colon != line.npos && colon > blank + 1 && line.compare(colon, 2, ": ") == 0) {
    cut = colon + 1;  // "node1 0: ", host and rank
  }
  if (cut == 0 || cut > line.size()) return false;
  line.erase(0, cut);
  return true;
}

void strip_prefixes(std::string& line, std::string& time) {
  while (strip_prefix(line, time)) continue;
}

bool fits(const NcclColumn& column, const std::string& word, bool last) {
  using Kind = NcclColumn::Kind;
  switch (column.kind) {
    case Kind::integer: return number_in<std::int64_t>(word).has_value();
    case Kind::root: return number_in<std::int64_t>(word, last).has_value();
    case Kind::text:
    case Kind::redop:
      return std::isalpha(static_cast<unsigned char>(word.front())) && word.find_first_of(":[]()=") == word.npos;
    case Kind::number: return number_in<double>(word, last).has_value();
    case Kind::wrong:
    case Kind::error:
      return word == "N/A" || (last && word.starts_with("N/A")) || number_in<double>(word, last).has_value();
    case Kind::other:
    case Kind::timestamp: return true;
  }
  return false;
}

NcclColumns::NcclColumns() {
  read("size count type redop root time algbw busbw #wrong time algbw busbw #wrong");
  header_ = false;
}

bool NcclColumns::is_header(const NcclWords& words) {
  std::set<std::string> names;
  for (const std::string& word : words) names.insert(nccl_column(word).name);
  return names.contains("size") && (names.contains("busbw") || names.contains("algbw") || names.contains("time"));
}

void NcclColumns::read(const std::string& header) {
  all_.clear();
  halves_ = 0, header_ = true;
  std::set<std::string> seen;
  for (std::size_t at = 0; (at = header.find_first_not_of(" \t", at)) != header.npos;) {
    const std::size_t end = std::min(header.find_first_of(" \t", at), header.size());
    const std::string word = header.substr(at, end - at);
    at = end;
    if (word.front() == '(') {
      if (!all_.empty()) set_unit(all_.back(), word);
      continue;
    }
    NcclColumn column = nccl_column(word);
    column.end = end;
    const bool figure = column.kind == NcclColumn::Kind::number || column.kind == NcclColumn::Kind::wrong ||
                        column.kind == NcclColumn::Kind::error;
    if (figure || (column.kind == NcclColumn::Kind::other && halves_ > 0)) {
      if (halves_ == 0 || !seen.insert(column.name).second) ++halves_, seen = {column.name};
      column.half = halves_ - 1;
    }
    if (const std::size_t open = word.find('('); open != word.npos) set_unit(column, word.substr(open));
    all_.push_back(column);
  }
}

void NcclColumns::read_units(const std::string& line) {
  for (std::size_t at = 0; (at = line.find('(', at)) != line.npos;) {
    const std::size_t end = line.find(')', at);
    if (end == line.npos) return;
    const auto distance = [&](const NcclColumn& column) {
      return column.end > end + 1 ? column.end - end - 1 : end + 1 - column.end;
    };
    const auto column = std::min_element(
        all_.begin(), all_.end(), [&](const NcclColumn& a, const NcclColumn& b) { return distance(a) < distance(b); });
    if (column != all_.end()) set_unit(*column, line.substr(at, end - at + 1));
    at = end;
  }
}

std::size_t NcclColumns::leading() const {
  std::size_t count = 0;
  while (count < all_.size() && all_[count].half < 0) ++count;
  return count;
}

}  // namespace assay::report
