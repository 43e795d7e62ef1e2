// The kernel's log of past days: where it is kept, how its lines are dated, which of them are evidence of a problem.
#pragma once

#include "harness/audit/audit.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::audit {

// A line of a log, without what stands before the message.
struct LogLine {
  std::optional<double> unix_seconds;  // absent: the line is not dated
  std::string text;
};

// /dev/kmsg ("6,339,5140900,-;message", microseconds since boot) or dmesg's output ("[    5.140900] message").
std::vector<LogLine> read_kmsg(std::string_view text, std::optional<double> boot_unix_seconds);
// A syslog's file: dates as in RFC 3339, as Unix seconds, or as "Nov 20 03:12:44", the latest such moment that is not
// after tomorrow, in local time if `local`, else in UTC. Lines that do not come from the kernel are left out.
std::vector<LogLine> read_syslog(std::string_view text, double now_unix_seconds, bool local);

// Absent for a message that is no evidence of anything.
std::optional<KernelEvent> parse_kernel_message(std::string_view message);

struct KernelLog {
  std::vector<KernelEvent> events;      // oldest first; those of unknown time at the end
  std::vector<std::string> sources;     // what could be read: "/dev/kmsg", "journal", "/var/log/kern.log"
  std::optional<double> latest_future;  // the latest date that lies more than an hour after now
};
// An event that several sources hold is listed once.
KernelLog read_kernel_log(const Root& root, double now_unix_seconds, double days, std::optional<double> boot);

}  // namespace assay::audit
