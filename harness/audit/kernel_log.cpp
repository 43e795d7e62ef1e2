// Where the kernel's log is kept, and its dates.
#include "harness/audit/kernel_log.h"

#include "harness/audit/areas.h"
#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/core/utc.h"
#include "harness/process/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/klog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <utility>

namespace assay::audit {

namespace {

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30;  // of one log: its end
constexpr std::size_t max_kinds = 4000;                      // of messages that are no faults: those are all kept

// Reads what can be read without waiting, of a large file its end; returns how many bytes were left out, absent if it
// cannot be read. /dev/kmsg gives one record per read, and EPIPE where records were overwritten meanwhile.
std::optional<std::uint64_t> read_log(const std::filesystem::path& path, LogPieces pieces) {
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

// Reads what /dev/kmsg holds, for a container that has the capability SYSLOG but not the device; empty if it must not.
std::string kernel_ring() {
  constexpr int read_all = 3, size_of_buffer = 10;
  const int size = ::klogctl(size_of_buffer, nullptr, 0);
  std::string text(static_cast<std::size_t>(std::max(size, 0)), '\0');
  text.resize(static_cast<std::size_t>(std::max(::klogctl(read_all, text.data(), size), 0)));
  return text;
}

std::optional<double> later(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::max(*a, *b) : a ? a : b;
}
std::optional<double> earlier(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

bool runs_backwards(const std::vector<LogLine>& lines, std::optional<bool>& known) {
  std::int64_t up = 0, down = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const bool dated = lines[i].unix_seconds && lines[i - 1].unix_seconds;
    const auto now = dated ? lines[i].unix_seconds : lines[i].uptime_seconds,
               before = dated ? lines[i - 1].unix_seconds : lines[i - 1].uptime_seconds;
    if (now && before && *now != *before) ++(*now > *before ? up : down);
  }
  if (!known && up + down > 0) known = down > up;
  return known.value_or(false);
}

}  // namespace

// Tells whether another boot begins between the line and the one before it in the log.
bool EventCounts::begins_boot(const LogLine& line, bool backwards) {
  const auto uptime_before = std::exchange(uptime_, line.uptime_seconds);
  bool begins = line.boot == BootChange::other;
  // Lines of several CPUs may stand in another order for a moment.
  if (line.boot != BootChange::none && line.uptime_seconds && uptime_before)
    begins =
        begins || (backwards ? *line.uptime_seconds > *uptime_before + 1 : *line.uptime_seconds < *uptime_before - 1);
  // Few messages come before this one in a boot, and none after it if the log has the newest first.
  constexpr std::int64_t few = 3;
  if (line.boot == BootChange::first && !backwards) begins = begins || had_first_ || of_this_boot_ > few;
  if (backwards) begins = std::exchange(after_first_, line.boot == BootChange::first) || begins;
  begins = begins && of_this_boot_ > 0;
  had_first_ = line.boot == BootChange::first || (had_first_ && !begins);
  of_this_boot_ = begins ? 1 : of_this_boot_ + 1;
  began_ = began_ || (!in_earlier_boot_ && (begins || line.boot == BootChange::first));
  boots_ += begins ? 1 : 0;
  return begins;
}

void EventCounts::add(std::vector<LogLine> messages) {
  const bool backwards = runs_backwards(messages, newest_first_);
  std::vector<bool> earlier(messages.size(), false);
  if (backwards) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      in_earlier_boot_ = begins_boot(messages[i], true) || in_earlier_boot_;
      earlier[i] = in_earlier_boot_;
    }
    // The lines of a report are counted in the order in which they were written.
    std::ranges::reverse(messages);
    std::reverse(earlier.begin(), earlier.end());
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!backwards && begins_boot(messages[i], false)) {
      // Nothing until here is of the last boot.
      auto before = std::exchange(events_, {});
      for (auto& [key, event] : before) {
        if (std::get<Of>(key) == Of::too_old) continue;
        Key earlier_key = key;
        std::get<Of>(earlier_key) = Of::earlier_boot;
        keep(std::move(earlier_key), std::move(event));
      }
      reaches_ = false;
    }
    add(messages[i], earlier[i]);
  }
}

void EventCounts::keep(Key key, KernelEvent event) {
  const auto known = events_.find(key);
  if (known == events_.end()) {
    events_.emplace(std::move(key), std::move(event));
    return;
  }
  KernelEvent& mine = known->second;
  mine.count += event.count;
  if (event.unix_seconds >= mine.unix_seconds) mine.text = std::move(event.text);
  mine.unix_seconds = later(mine.unix_seconds, event.unix_seconds);
  mine.first_seconds = earlier(mine.first_seconds, event.first_seconds);
  mine.uptime_seconds = later(mine.uptime_seconds, event.uptime_seconds);
}

void EventCounts::add(const LogLine& message, bool earlier_boot) {
  const auto& moment = message.unix_seconds;
  if (moment && *moment > now_ + 3600) latest_future_ = later(latest_future_, moment);
  first_ = earlier(first_, moment);
  last_ = later(last_, moment);
  const bool before_boot = moment && boot_ && *moment < *boot_ - 1;
  reaches_ = reaches_ || (!earlier_boot && moment && boot_ && !before_boot);
  if (moment && *moment >= until_) return;
  const bool too_old = moment && *moment < from_;
  if (too_old && (earlier_boot || !before_boot)) return;
  for (KernelEvent& event : parse_kernel_message(message.text, address_before(message))) {
    event.unix_seconds = event.first_seconds = moment;
    if (!moment) event.uptime_seconds = message.uptime_seconds;
    const Of of = earlier_boot  ? Of::earlier_boot
                  : too_old     ? Of::too_old
                  : before_boot ? Of::by_its_date
                                : Of::last_boot;
    Key key{event.kind, event.problem, event.device, event.code, of};
    if (events_.size() >= max_kinds && !is_fault(event.problem) && !events_.contains(key))
      ++left_out_;
    else
      keep(std::move(key), std::move(event));
  }
}

// A clock that was wrong dated the messages that are before the machine's boot by their date, and in the log between
// the beginning of that boot and its end.
void EventCounts::settle() {
  const bool same_boot = reaches_ && began_;
  auto all = std::exchange(events_, {});
  for (auto& [key, event] : all) {
    Key settled = key;
    if (std::get<Of>(key) == Of::too_old && !same_boot) continue;
    if (std::get<Of>(key) == Of::by_its_date || std::get<Of>(key) == Of::too_old)
      std::get<Of>(settled) = same_boot ? Of::last_boot : Of::earlier_boot;
    keep(std::move(settled), std::move(event));
  }
}

void EventCounts::join(EventCounts other) {
  settle();
  other.settle();
  for (auto& [key, event] : other.events_) {
    const auto [known, is_new] = events_.try_emplace(key, event);
    if (is_new) continue;
    KernelEvent& mine = known->second;
    const auto count = std::max(mine.count, event.count);
    keep(key, std::move(event));
    mine.count = count;
  }
  latest_future_ = later(latest_future_, other.latest_future_);
  left_out_ += other.left_out_;
}

std::vector<KernelEvent> EventCounts::finish() {
  settle();
  std::vector<KernelEvent> all;
  for (auto& [key, event] : events_) {
    event.earlier_boot = std::get<Of>(key) == Of::earlier_boot;
    all.push_back(std::move(event));
  }
  std::ranges::stable_sort(all, [](const KernelEvent& a, const KernelEvent& b) {
    return a.unix_seconds && (!b.unix_seconds || *a.unix_seconds < *b.unix_seconds);
  });
  return all;
}

// Drivers split a report over several messages, of which only the first names the device: the last address that the
// same one ("NVRM:") named within a second.
std::string EventCounts::address_before(const LogLine& message) {
  const std::string_view text = message.text;
  const std::string speaker = speaker_of(text);
  if (speaker.empty()) return {};
  const auto moment = message.unix_seconds ? message.unix_seconds : message.uptime_seconds;
  if (auto address = last_pci_address(text); !address.empty()) {
    named_[speaker] = {moment, std::move(address)};
    return {};
  }
  const auto named = named_.find(speaker);
  if (named == named_.end()) return {};
  const double apart = std::abs(moment.value_or(0) - named->second.moment.value_or(0));
  return apart <= 1 ? named->second.address : std::string();
}

KernelLog read_kernel_log(const Root& root, double now, double days, std::optional<double> boot) {
  KernelLog log;
  const double from = now - days * 24 * 3600;
  const EventCounts none(from, now, boot);
  EventCounts all = none;
  const LogDates dates{now, root.real(), {}};
  const auto lines_into = [](EventCounts& counts, LogReader& reader) {
    return LogPieces([&](std::string_view text) { counts.add(reader.read(text)); });
  };
  const auto add_source = [&](const std::string& source, std::uint64_t bytes, std::int64_t messages) {
    (messages > 0 ? log.sources : log.empty).push_back(source);
    if (bytes > 0) log.cut.push_back(fmt::format("{}: its first {}", source, format_bytes(static_cast<double>(bytes))));
  };
  double until = std::numeric_limits<double>::infinity();
  if (root.real()) {
    constexpr double max_seconds = 3;  // of a big journal, what was printed until then counts: the newest first
    EventCounts journal = none;
    LogReader reader(dates);
    LogPieces pieces = lines_into(journal, reader);
    std::uint64_t bytes = 0;
    ProcessRun run;
    run.process.words = {find_program("journalctl"),
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
    if (bytes > 0) add_source("journal", 0, reader.tally().messages);
    if (!done.ended() || (reader.tally().messages > 0 && !done.problem.empty()))
      log.cut.push_back(fmt::format("journal: all but the newest {}, as journalctl {}",
                                    format_bytes(static_cast<double>(bytes)),
                                    done.ended() ? "failed" : fmt::format("took more than {:g} s", max_seconds)));
    // The files may hold lines that any user has written by logger(1), so they tell only of what was before the
    // journal.
    if (reader.tally().messages > 0 && journal.first()) until = std::max(*journal.first(), boot.value_or(0));
    all.join(std::move(journal));
  }
  // A message moves from one file to the next, so that both are one source; kern.log and messages may hold the same.
  for (const char* name : {"var/log/kern.log", "var/log/messages"}) {
    EventCounts files = none;
    files.only_before(until);
    LogReader reader(dates);
    for (const char* older : {".1", ""}) {
      const std::string path = std::string(name) + older;
      const auto before = reader.tally().messages;
      if (const auto left_out = read_log(root.path() / path, lines_into(files, reader)))
        add_source("/" + path, *left_out, reader.tally().messages - before);
    }
    all.join(std::move(files));
  }
  EventCounts kmsg = none;
  LogReader records({now, root.real(), boot});
  if (const auto left_out = read_log(root.path() / "dev/kmsg", lines_into(kmsg, records)))
    add_source("/dev/kmsg", *left_out, records.tally().messages);
  else if (const std::string ring = root.real() ? kernel_ring() : std::string(); !ring.empty()) {
    LogPieces pieces = lines_into(kmsg, records);
    pieces.add(ring);
    pieces.finish();
    add_source("syslog(2)", 0, records.tally().messages);
  }
  all.join(std::move(kmsg));
  log.events = all.finish();
  log.latest_future = all.latest_future();
  if (all.left_out() > 0)
    log.cut.push_back(fmt::format("{} messages of further devices, none a fault", all.left_out()));
  return log;
}

}  // namespace assay::audit
