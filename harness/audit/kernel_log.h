// The kernel's log of past days: where it is kept, how its lines are dated, which of them are evidence of a problem.
#pragma once

#include "harness/audit/audit.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::audit {

// A message of a log, without what stands before it. Of several lines, which it keeps, if lines that begin with blanks
// follow the first, or if it holds a line's end as kmsg ("\\x0a") or rsyslog ("#012") writes it.
struct LogLine {
  std::optional<double> unix_seconds;  // absent: the message is not dated
  std::string text;
};

// /dev/kmsg ("6,339,5140900,-;message", microseconds since boot) or dmesg's output ("[    5.140900] message").
std::vector<LogLine> read_kmsg(std::string_view text, std::optional<double> boot_unix_seconds);
// A syslog's file: dates as in RFC 3339, as Unix seconds, or as "Nov 20 03:12:44", the latest such moment that is not
// after tomorrow, in local time if `local`, else in UTC. Messages that do not come from the kernel are left out.
std::vector<LogLine> read_syslog(std::string_view text, double now_unix_seconds, bool local);

// The first word of a message if it ends with a colon, "NVRM:"; else empty.
std::string speaker_of(std::string_view message);
// What a message is evidence of: each line by itself that begins as the first, with those that do not; or else the
// whole. `pci` is the address that a line means which lacks one of its own; may be empty.
std::vector<KernelEvent> parse_kernel_message(std::string_view message, const std::string& pci = {});

struct KernelLog {
  std::vector<KernelEvent> events;      // by their last message; those of unknown time at the end
  std::vector<std::string> sources;     // what could be read: "/dev/kmsg", "journal", "/var/log/kern.log"
  std::vector<std::string> cut;         // what was left out of them, and how much
  std::optional<double> latest_future;  // the latest date that lies more than an hour after now
};
// Messages that several sources hold are counted once: as often as the source that holds most of them.
KernelLog read_kernel_log(const Root& root, double now_unix_seconds, double days, std::optional<double> boot);

}  // namespace assay::audit
