// Where the kernel's log is kept, and its dates.
#include "harness/audit/kernel_log.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>

extern char** environ;

namespace assay::audit {

namespace {

constexpr std::size_t max_bytes = std::size_t{8} << 20;  // of one log: its end
constexpr std::size_t max_events = 4000;
constexpr double hour = 3600, day = 24 * hour;

// What can be read without waiting, at most its last 8 MiB; absent if it cannot be opened. /dev/kmsg gives one record
// per read, and EPIPE where records were overwritten meanwhile.
std::optional<std::string> log_text(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  if (const auto size = ::lseek(file, 0, SEEK_END); size > static_cast<off_t>(max_bytes))
    ::lseek(file, size - static_cast<off_t>(max_bytes), SEEK_SET);
  else
    ::lseek(file, 0, SEEK_SET);
  std::string all;
  std::vector<char> piece(16384);
  bool readable = true;
  while (all.size() < 2 * max_bytes) {
    const auto got = ::read(file, piece.data(), piece.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got < 0 && errno != EAGAIN) readable = !all.empty();
    if (got <= 0) break;
    all.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(file);
  return readable ? std::optional(std::move(all)) : std::nullopt;
}

// What a program prints, ended after `seconds`; absent if there is none, or it fails.
std::optional<std::string> output_of(std::vector<std::string> program, double seconds) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (std::string& word : program) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const bool started = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string all;
  bool ended = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::vector<char> piece(65536);
  while (started && all.size() < max_bytes) {
    const auto left = std::chrono::duration<double>(deadline - std::chrono::steady_clock::now()).count();
    pollfd ready{ends[0], POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(std::ceil(left * 1000))) <= 0) break;
    const auto got = ::read(ends[0], piece.data(), piece.size());
    if ((ended = got <= 0)) break;
    all.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 1;
  if (started) {
    if (!ended) ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  // Cut short by time or size, it still holds events.
  return started && (!ended || status == 0) ? std::optional(std::move(all)) : std::nullopt;
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

// Adds the events of another source but for those that are already there: an equal message within two minutes, as the
// kernel's clock and the log's drift apart. Each known event stands for one.
void merge(std::vector<KernelEvent>& known, const std::vector<LogLine>& found, double from, KernelLog& log,
           double now) {
  constexpr double drift = 120;
  std::vector<KernelEvent> added;
  std::vector<bool> taken(known.size(), false);
  for (const LogLine& line : found) {
    if (line.unix_seconds && *line.unix_seconds > now + hour)
      log.latest_future = std::max(log.latest_future.value_or(0), *line.unix_seconds);
    if (line.unix_seconds && *line.unix_seconds < from) continue;
    auto event = parse_kernel_message(line.text);
    if (!event) continue;
    event->unix_seconds = line.unix_seconds;
    bool twice = false;
    for (std::size_t i = 0; i < known.size() && !twice; ++i)
      if (!taken[i] && known[i].text == event->text &&
          (!known[i].unix_seconds || !event->unix_seconds ||
           std::abs(*known[i].unix_seconds - *event->unix_seconds) <= drift))
        twice = taken[i] = true;
    if (!twice) added.push_back(std::move(*event));
    if (known.size() + added.size() >= max_events) break;
  }
  std::move(added.begin(), added.end(), std::back_inserter(known));
}

}  // namespace

std::vector<LogLine> read_kmsg(std::string_view text, std::optional<double> boot) {
  std::vector<LogLine> all;
  for (const std::string& line : lines(text)) {
    if (line.starts_with(" ")) continue;  // " SUBSYSTEM=pci": belongs to the message above
    const std::string_view all_of_it = line;
    std::optional<double> uptime;
    std::string_view message;
    if (const auto semicolon = line.find(';'); !line.starts_with("[") && semicolon != line.npos) {
      const auto fields = split_commas(all_of_it.substr(0, semicolon));
      const auto microseconds = fields.size() >= 3 ? to_integer(fields[2]) : std::nullopt;
      if (!microseconds || *microseconds < 0) continue;
      uptime = static_cast<double>(*microseconds) / 1e6;
      message = all_of_it.substr(semicolon + 1);
    } else if (const auto close = line.find("] "); line.starts_with("[") && close != line.npos) {
      uptime = decimal(trim(all_of_it.substr(1, close - 1)));
      message = all_of_it.substr(close + 2);
    } else {
      continue;
    }
    LogLine& kept = all.emplace_back();
    if (boot && uptime) kept.unix_seconds = *boot + *uptime;
    kept.text = message;
  }
  return all;
}

std::vector<LogLine> read_syslog(std::string_view text, double now, bool local) {
  std::vector<LogLine> all;
  for (const std::string& line : lines(text)) {
    const std::string_view whole = line;
    const auto blank = whole.find(' ');
    if (blank == whole.npos) continue;
    std::optional<double> moment;
    auto rest = whole.substr(blank + 1);
    if ((moment = rfc3339(whole.substr(0, blank), local)) || (moment = decimal(whole.substr(0, blank)))) {
    } else if ((moment = traditional(whole, now, local)) && whole.size() > 16) {
      rest = whole.substr(16);
    } else {
      continue;
    }
    const auto host = rest.find(' ');
    if (host == rest.npos) continue;
    rest.remove_prefix(host + 1);
    if (!rest.starts_with("kernel: ")) continue;
    all.push_back({moment, std::string(without_uptime(rest.substr(8)))});
  }
  return all;
}

KernelLog read_kernel_log(const Root& root, double now, double days, std::optional<double> boot) {
  KernelLog log;
  const double from = now - days * day;
  std::optional<std::string> journal;
  if (root.real()) {
    constexpr double max_seconds = 2;  // of a big journal, what was printed until then counts: the newest first
    journal = output_of({"journalctl", "--quiet", "--no-pager", "--reverse", "--output=short-unix", "_TRANSPORT=kernel",
                         "--since=@" + std::to_string(static_cast<std::int64_t>(std::max(from, 0.0)))},
                        max_seconds);
  }
  if (journal && !journal->empty()) {
    log.sources.emplace_back("journal");
    merge(log.events, read_syslog(*journal, now, root.real()), from, log, now);
  }
  std::vector<LogLine> files;  // one source: a message moves from one to the next
  for (const char* name : {"var/log/kern.log.1", "var/log/kern.log", "var/log/messages.1", "var/log/messages"})
    if (const auto text = log_text(root.path() / name)) {
      log.sources.push_back(std::string("/") + name);
      for (LogLine& line : read_syslog(*text, now, root.real())) files.push_back(std::move(line));
      // kern.log and messages may hold the same lines: merged apart.
      if (std::string_view(name).ends_with(".1")) continue;
      merge(log.events, files, from, log, now);
      files.clear();
    }
  merge(log.events, files, from, log, now);
  if (const auto text = log_text(root.path() / "dev/kmsg")) {
    log.sources.emplace_back("/dev/kmsg");
    merge(log.events, read_kmsg(*text, boot), from, log, now);
  }
  std::stable_sort(log.events.begin(), log.events.end(), [](const KernelEvent& a, const KernelEvent& b) {
    return a.unix_seconds && (!b.unix_seconds || *a.unix_seconds < *b.unix_seconds);
  });
  return log;
}

}  // namespace assay::audit
