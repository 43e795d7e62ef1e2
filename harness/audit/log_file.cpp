#include "harness/audit/log_file.h"

#include "harness/audit/areas.h"
#include "harness/audit/kernel_log.h"
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/text.h"
#include "harness/core/utc.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

namespace assay::audit {

namespace {

// Says what to do with a file that is no text; empty if nothing is known of it.
std::string_view remedy_for(std::string_view start) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> magics = {
      {{"\x1f\x8b", "it is compressed: zcat FILE | assay audit --log -"},
       {"\xfd"
        "7zXZ",
        "it is compressed: xzcat FILE | assay audit --log -"},
       {"\x28\xb5\x2f\xfd", "it is compressed: zstdcat FILE | assay audit --log -"},
       {"BZh", "it is compressed: bzcat FILE | assay audit --log -"},
       {"LPKSHHRH", "it is a journal's own file: journalctl --file FILE -k -o json | assay audit --log -"}}};
  for (const auto& [magic, remedy] : magics)
    if (start.starts_with(magic)) return remedy;
  return {};
}

void read_all(const std::string& file, LogPieces pieces) {
  struct stat about {};
  const Descriptor opened = file == "-" ? Descriptor() : open_to_read(file, about, Pipes::read);
  const int from = file == "-" ? STDIN_FILENO : static_cast<int>(opened);
  std::vector<char> piece(1 << 20);
  for (bool start = true;; start = false) {
    const auto got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(fmt::format("{}: {}", one_line(file), std::strerror(errno)));
    if (got == 0) break;
    const std::string_view text(piece.data(), static_cast<std::size_t>(got));
    if (const auto remedy = start ? remedy_for(text) : ""; !remedy.empty())
      throw Error(fmt::format("{}: {}", one_line(file), remedy));
    pieces.add(text);
  }
  pieces.finish();
}

std::vector<std::string> unknown_of(const LogTally& tally, const EventCounts& counts, bool bare) {
  std::vector<std::string> unknown;
  const auto messages = [](std::int64_t n) { return fmt::format("{}", plural(n, "message")); };
  if (bare)
    unknown.push_back(fmt::format("{} without anything that says when, or in which boot", messages(tally.bare)));
  if (tally.undated > 0)
    unknown.push_back(
        fmt::format("{} without a date: only the time since the boot is known, if at all", messages(tally.undated)));
  if (tally.unset > 0)
    unknown.push_back(fmt::format("{} dated before 2010, by a clock that was not set", messages(tally.unset)));
  if (tally.without_zone > 0)
    unknown.push_back(fmt::format("{} dated without a zone, taken as UTC", messages(tally.without_zone)));
  if (tally.without_year > 0)
    unknown.push_back(fmt::format("{} dated without a year, taken as the latest that is not after tomorrow",
                                  messages(tally.without_year)));
  if (counts.latest_future())
    unknown.push_back(
        fmt::format("a message is dated {}, which is after now: that machine's clock or this one's is wrong",
                    utc_text(static_cast<std::time_t>(*counts.latest_future()))));
  if (counts.left_out() > 0)
    unknown.push_back(fmt::format("{} of further devices, none a fault, are left out", messages(counts.left_out())));
  return unknown;
}

}  // namespace

AuditedLog audit_log(const std::string& file, double now) {
  AuditedLog log;
  log.file = file == "-" ? "stdin" : one_line(file);
  LogReader reader({now, false, {}}, true);
  EventCounts counts(-std::numeric_limits<double>::infinity(), now, {});
  try {
    read_all(file, LogPieces([&](std::string_view text) { counts.add(reader.read(text)); }));
  } catch (const Error& error) {
    throw UsageError(fmt::format("--log: {}", error.what()));
  }
  const LogTally& tally = reader.tally();
  // Lines without a form are messages only if some look so.
  log.audit.events = counts.finish();
  const bool bare = reader.looks_like_a_kernel() || !log.audit.events.empty();
  log.lines = tally.lines;
  log.others = tally.others;
  log.messages = tally.messages + (bare ? tally.bare : 0);
  log.unread = tally.unread + (bare ? 0 : tally.bare);
  if (log.unread > 0) log.first_unread = {tally.first_unread, tally.first_unread_text};
  if (log.messages > 0) log.boots = counts.boots();
  log.first = counts.first();
  log.last = counts.last();
  log.unknown = unknown_of(tally, counts, bare && tally.bare > 0);
  Report report;
  audit_events(log.audit.events, report);
  sort_by_severity(report.problems);
  log.audit.problems = std::move(report.problems);
  return log;
}

}  // namespace assay::audit
