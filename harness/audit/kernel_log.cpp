// Where the kernel's log is kept, and its dates.
#include "harness/audit/kernel_log.h"

#include "harness/audit/areas.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/utc.h"
#include "harness/process/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <tuple>

namespace assay::audit {

namespace {

constexpr std::size_t block_bytes = std::size_t{4} << 20;
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30;  // of one log: its end
constexpr std::size_t max_kinds = 4000;                      // of messages that are no faults: those are all kept
constexpr double hour = 3600, day = 24 * hour;

bool blank(char c) { return c == ' ' || c == '\t'; }

// Hands a log on in pieces that end where a message does, so that a large one need not be held in memory.
class Pieces {
 public:
  explicit Pieces(std::function<void(std::string_view)> take) : take_(std::move(take)) {}
  void add(std::string_view bytes) {
    text_ += bytes;
    if (text_.size() < block_bytes) return;
    for (std::size_t end = text_.size(); (end = text_.rfind('\n', end - 1)) != text_.npos && end > 0;)
      if (end + 1 < text_.size() && !blank(text_[end + 1])) {
        take_(std::string_view(text_).substr(0, end + 1));
        text_.erase(0, end + 1);
        break;
      }
    if (text_.size() > 4 * block_bytes) finish();  // a line without an end
  }
  void finish() {
    take_(text_);
    text_.clear();
  }

 private:
  std::function<void(std::string_view)> take_;
  std::string text_;
};

// Reads what can be read without waiting, of a large file its end; returns how many bytes were left out, absent if it
// cannot be read. /dev/kmsg gives one record per read, and EPIPE where records were overwritten meanwhile.
std::optional<std::uint64_t> read_log(const std::filesystem::path& path, Pieces pieces) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(std::max<off_t>(::lseek(file, 0, SEEK_END), 0));
  const std::uint64_t left_out = size - std::min(size, max_bytes);
  ::lseek(file, static_cast<off_t>(left_out), SEEK_SET);
  std::uint64_t all = 0;
  std::vector<char> piece(65536);
  bool readable = true;
  while (all < 2 * max_bytes) {
    const auto got = ::read(file, piece.data(), piece.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got < 0 && errno != EAGAIN) readable = all > 0;
    if (got <= 0) break;
    all += static_cast<std::uint64_t>(got);
    pieces.add({piece.data(), static_cast<std::size_t>(got)});
  }
  ::close(file);
  pieces.finish();
  return readable ? std::optional(left_out) : std::nullopt;
}

// Digits of a fixed width.
std::optional<int> digits(std::string_view text, std::size_t from, std::size_t count) {
  if (from + count > text.size()) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(from, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<double> seconds_of(std::tm parts, bool local) {
  parts.tm_isdst = -1;
  const std::time_t moment = local ? std::mktime(&parts) : timegm(&parts);
  return moment == -1 ? std::nullopt : std::optional(static_cast<double>(moment));
}

// "2026-11-20T03:12:44.123456+00:00"; the fraction and the zone may be missing.
std::optional<double> rfc3339(std::string_view word, bool local) {
  const auto year = digits(word, 0, 4), month = digits(word, 5, 2), date = digits(word, 8, 2), h = digits(word, 11, 2),
             minute = digits(word, 14, 2), second = digits(word, 17, 2);
  if (!year || !month || !date || !h || !minute || !second || word[4] != '-' || word[10] != 'T') return std::nullopt;
  if (*month < 1 || *month > 12 || *date < 1 || *date > 31 || *h > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  auto zone = word.substr(19);
  if (zone.starts_with(".")) zone.remove_prefix(std::min(zone.find_first_not_of("0123456789", 1), zone.size()));
  std::tm parts{};
  parts.tm_year = *year - 1900;
  parts.tm_mon = *month - 1;
  parts.tm_mday = *date;
  parts.tm_hour = *h;
  parts.tm_min = *minute;
  parts.tm_sec = *second;
  const auto moment = seconds_of(parts, local && zone.empty());
  if (!moment || zone.empty() || zone == "Z") return moment;
  const auto zone_h = digits(zone, 1, 2), zone_minute = digits(zone, zone.size() == 6 ? 4 : 3, 2);
  if (!zone_h || !zone_minute || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  return *moment - (zone[0] == '+' ? 1 : -1) * (*zone_h * hour + *zone_minute * 60);
}

// "Nov 20 03:12:44", without a year.
std::optional<double> traditional(std::string_view text, double now, bool local) {
  static constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() < 15) return std::nullopt;
  const auto* const month = std::find(months.begin(), months.end(), text.substr(0, 3));
  const auto date = to_integer(text.substr(4, 2));
  const auto h = digits(text, 7, 2), minute = digits(text, 10, 2), second = digits(text, 13, 2);
  if (month == months.end() || !date || *date < 1 || *date > 31 || !h || !minute || !second || *h > 23 ||
      *minute > 59 || *second > 60)
    return std::nullopt;
  const auto today = static_cast<std::time_t>(now);
  std::tm parts{};
  gmtime_r(&today, &parts);
  for (int year = parts.tm_year + 1; year >= parts.tm_year - 1; --year) {
    std::tm dated{};
    dated.tm_year = year;
    dated.tm_mon = static_cast<int>(month - months.begin());
    dated.tm_mday = static_cast<int>(*date);
    dated.tm_hour = *h;
    dated.tm_min = *minute;
    dated.tm_sec = *second;
    if (const auto moment = seconds_of(dated, local); moment && *moment <= now + day) return moment;
  }
  return std::nullopt;
}

std::optional<double> decimal(std::string_view text) {
  if (text.empty() || text.size() > 20 || text.find_first_not_of("0123456789.") != text.npos) return std::nullopt;
  char* end = nullptr;
  const std::string copy(text);
  const double value = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size() ? std::optional(value) : std::nullopt;
}

// Without "[   12.345678] ", which some logs keep.
std::string_view without_uptime(std::string_view message) {
  if (!message.starts_with("[")) return message;
  const auto close = message.find("] ");
  if (close == message.npos || !decimal(trim(message.substr(1, close - 1)))) return message;
  return message.substr(close + 2);
}

// With the ends of lines that kmsg and rsyslog write as \x0a and #012.
std::string with_ends_of_lines(std::string_view message) {
  std::string text(message);
  for (const std::string_view end : {"\\x0a", "#012"})
    for (auto at = text.find(end); at != text.npos; at = text.find(end, at)) text.replace(at, end.size(), "\n");
  return text;
}

template <typename F>
void for_each_line(std::string_view text, F&& take) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::optional<double> later(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::max(*a, *b) : a ? a : b;
}
std::optional<double> earlier(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// The messages of one source, counted.
class Counts {
 public:
  Counts(double from, double now, std::optional<double> boot) : from_(from), now_(now), boot_(boot) {}

  void add(std::vector<LogLine> messages) {
    // As a journal is printed: the newest first, but the lines of a report in the order in which they were written.
    if (!messages.empty() && messages.back().unix_seconds &&
        messages.front().unix_seconds > messages.back().unix_seconds)
      std::ranges::reverse(messages);
    for (const LogLine& message : messages) add(message);
  }

  // As often as in the one of both that has more of it.
  void join(Counts&& other) {
    for (auto& [key, event] : other.events_) {
      const auto [known, is_new] = events_.try_emplace(key, event);
      if (is_new) continue;
      KernelEvent& mine = known->second;
      if (event.unix_seconds > mine.unix_seconds) mine.text = event.text;
      mine.unix_seconds = later(mine.unix_seconds, event.unix_seconds);
      mine.first_seconds = earlier(mine.first_seconds, event.first_seconds);
      mine.count = std::max(mine.count, event.count);
    }
    latest_future_ = later(latest_future_, other.latest_future_);
    left_out_ += other.left_out_;
  }

  void finish(KernelLog& log) {
    for (auto& [key, event] : events_) log.events.push_back(std::move(event));
    std::ranges::stable_sort(log.events, [](const KernelEvent& a, const KernelEvent& b) {
      return a.unix_seconds && (!b.unix_seconds || *a.unix_seconds < *b.unix_seconds);
    });
    log.latest_future = latest_future_;
    if (left_out_ > 0) log.cut.push_back(fmt::format("{} messages of further devices, none a fault", left_out_));
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, bool>;

  void add(const LogLine& message) {
    const auto& moment = message.unix_seconds;
    if (moment && *moment > now_ + hour) latest_future_ = later(latest_future_, moment);
    if (moment && *moment < from_) return;
    for (KernelEvent& event : parse_kernel_message(message.text, address_before(message))) {
      event.unix_seconds = event.first_seconds = moment;
      const bool before_boot = moment && boot_ && *moment < *boot_ - 1;
      Key key{event.kind, event.problem, event.device, event.code, before_boot};
      auto known = events_.find(key);
      if (known == events_.end() && events_.size() >= max_kinds && !is_fault(event.problem)) {
        ++left_out_;
      } else if (known == events_.end()) {
        events_.emplace(std::move(key), std::move(event));
      } else {
        KernelEvent& mine = known->second;
        ++mine.count;
        if (moment >= mine.unix_seconds) mine.text = std::move(event.text);
        mine.unix_seconds = later(mine.unix_seconds, moment);
        mine.first_seconds = earlier(mine.first_seconds, moment);
      }
    }
  }

  // Drivers split a report over several messages, of which only the first names the device: the last address that the
  // same one ("NVRM:") named within a second.
  std::string address_before(const LogLine& message) {
    const std::string_view text = message.text;
    const std::string speaker = speaker_of(text);
    if (speaker.empty()) return {};
    if (auto address = last_pci_address(text); !address.empty()) {
      named_[speaker] = {message.unix_seconds, std::move(address)};
      return {};
    }
    const auto named = named_.find(speaker);
    if (named == named_.end()) return {};
    const double apart = std::abs(message.unix_seconds.value_or(0) - named->second.moment.value_or(0));
    return apart <= 1 ? named->second.address : std::string();
  }

  struct Named {
    std::optional<double> moment;
    std::string address;
  };

  double from_, now_;
  std::optional<double> boot_;
  std::map<Key, KernelEvent> events_;
  std::int64_t left_out_ = 0;
  std::optional<double> latest_future_;
  std::map<std::string, Named> named_;  // by speaker
};

}  // namespace

std::vector<LogLine> read_kmsg(std::string_view text, std::optional<double> boot) {
  std::vector<LogLine> all;
  bool follows = false;  // whether a line that begins with blanks belongs to the last message
  for_each_line(text, [&](std::string_view line) {
    if (!line.empty() && blank(line.front())) {
      line = trim(line);
      // " SUBSYSTEM=pci" says something about the message, but is no line of it.
      const auto name = std::min(line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), line.size());
      const bool property = name > 0 && name < line.size() && line[name] == '=';
      if (follows && !property) all.back().text.append("\n").append(line);
      return;
    }
    follows = false;
    std::optional<double> uptime;
    std::string_view message;
    if (const auto semicolon = line.find(';'); !line.starts_with("[") && semicolon != line.npos) {
      const auto fields = split_commas(line.substr(0, semicolon));
      const auto microseconds = fields.size() >= 3 ? to_integer(fields[2]) : std::nullopt;
      if (!microseconds || *microseconds < 0) return;
      uptime = static_cast<double>(*microseconds) / 1e6;
      message = line.substr(semicolon + 1);
    } else if (const auto close = line.find("] "); line.starts_with("[") && close != line.npos) {
      uptime = decimal(trim(line.substr(1, close - 1)));
      message = line.substr(close + 2);
    } else {
      return;
    }
    LogLine& kept = all.emplace_back();
    if (boot && uptime) kept.unix_seconds = *boot + *uptime;
    kept.text = with_ends_of_lines(message);
    follows = true;
  });
  return all;
}

std::vector<LogLine> read_syslog(std::string_view text, double now, bool local) {
  std::vector<LogLine> all;
  bool follows = false;
  for_each_line(text, [&](std::string_view whole) {
    if (!whole.empty() && blank(whole.front())) {
      if (follows) all.back().text.append("\n").append(trim(whole));
      return;
    }
    follows = false;
    const auto gap = whole.find(' ');
    if (gap == whole.npos) return;
    std::optional<double> moment;
    auto rest = whole.substr(gap + 1);
    if ((moment = rfc3339(whole.substr(0, gap), local)) || (moment = decimal(whole.substr(0, gap)))) {
    } else if ((moment = traditional(whole, now, local)) && whole.size() > 16) {
      rest = whole.substr(16);
    } else {
      return;
    }
    const auto host = rest.find(' ');
    if (host == rest.npos) return;
    rest.remove_prefix(host + 1);
    if (!rest.starts_with("kernel: ")) return;
    all.push_back({moment, with_ends_of_lines(without_uptime(rest.substr(8)))});
    follows = true;
  });
  return all;
}

KernelLog read_kernel_log(const Root& root, double now, double days, std::optional<double> boot) {
  KernelLog log;
  const double from = now - days * day;
  const Counts none(from, now, boot);
  Counts all = none;
  const auto syslog_into = [&](Counts& counts) {
    return Pieces([&](std::string_view text) { counts.add(read_syslog(text, now, root.real())); });
  };
  const auto cut = [&](const std::string& source, std::uint64_t bytes) {
    log.sources.push_back(source);
    if (bytes > 0) log.cut.push_back(fmt::format("{}: its first {}", source, format_bytes(static_cast<double>(bytes))));
  };
  if (root.real()) {
    constexpr double max_seconds = 3;  // of a big journal, what was printed until then counts: the newest first
    Counts journal = none;
    Pieces pieces = syslog_into(journal);
    std::uint64_t bytes = 0;
    ProcessRun run;
    run.process.words = {find_program("journalctl"),
                         "--quiet",
                         "--no-pager",
                         "--reverse",
                         "--output=short-unix",
                         "_TRANSPORT=kernel",
                         "--since=@" + std::to_string(static_cast<std::int64_t>(std::max(from, 0.0)))};
    run.process.variables = inherited_variables();
    run.limit_seconds = max_seconds;
    run.on_output = [&](std::string_view text) {
      bytes += text.size();
      pieces.add(text);
    };
    const FinishedProcess done = run.process.words[0].empty() ? FinishedProcess() : run_process(run);
    pieces.finish();
    if (bytes > 0) log.sources.emplace_back("journal");
    if (!done.ended() || (bytes > 0 && !done.problem.empty()))
      log.cut.push_back(fmt::format("journal: all but the newest {}, as journalctl {}",
                                    format_bytes(static_cast<double>(bytes)),
                                    done.ended() ? "failed" : fmt::format("took more than {:g} s", max_seconds)));
    all.join(std::move(journal));
  }
  // A message moves from one file to the next, so that both are one source; kern.log and messages may hold the same.
  for (const char* name : {"var/log/kern.log", "var/log/messages"}) {
    Counts files = none;
    for (const char* older : {".1", ""}) {
      const std::string path = std::string(name) + older;
      if (const auto left_out = read_log(root.path() / path, syslog_into(files))) cut("/" + path, *left_out);
    }
    all.join(std::move(files));
  }
  Counts kmsg = none;
  if (const auto left_out =
          read_log(root.path() / "dev/kmsg", Pieces([&](std::string_view text) { kmsg.add(read_kmsg(text, boot)); })))
    cut("/dev/kmsg", *left_out);
  all.join(std::move(kmsg));
  all.finish(log);
  return log;
}

}  // namespace assay::audit
