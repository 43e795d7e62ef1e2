#include "cli/audit_text.h"

#include "harness/core/text.h"
#include "harness/core/utc.h"
#include "harness/core/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace assay::cli {

namespace {

// `before_device` separates a finding's id from its device.
std::string findings_text(const std::vector<Finding>& findings, std::string_view before_device) {
  std::string text;
  for (const Finding& one : findings)
    text += fmt::format("  {:<7}  {}{}{}: {}\n           so: {}\n           fix: {}\n", word_of(one.severity), one.id,
                        one.device.empty() ? "" : before_device, one.device, one.seen, one.meaning, one.fix);
  return text;
}

std::string events_text(const std::vector<KernelEvent>& events, std::string_view when) {
  std::int64_t messages = 0;
  for (const auto& event : events) messages += event.count;
  std::string text = fmt::format("\n{} of the kernel{}\n", plural(messages, "message"), when);
  for (const auto& event : events) {
    const auto last = event.unix_seconds     ? utc_text(static_cast<std::time_t>(*event.unix_seconds))
                      : event.uptime_seconds ? fmt::format("{:.0f} s after its boot", *event.uptime_seconds)
                                             : "time unknown";
    text += fmt::format("  {:<9} {}{}{} x, last {}: {}\n", event.kind, event.device, event.device.empty() ? "" : ", ",
                        event.count, last, event.text);
  }
  return text;
}

}  // namespace

std::string audit_text(const AuditedMachine& audit, std::string_view when) {
  const auto count = [&](Severity severity, const char* word) {
    return plural(std::ranges::count(audit.problems, severity, &Finding::severity), word);
  };
  return fmt::format("\naudit: {}, {}, {}\n", count(Severity::fault, "fault"), count(Severity::warning, "warning"),
                     count(Severity::info, "remark")) +
         findings_text(audit.problems, " ") + (audit.events.empty() ? "" : events_text(audit.events, when));
}

std::string spoilers_text(const std::vector<Finding>& findings) {
  if (findings.empty()) return "\nnothing here is known to spoil measurements\n";
  return fmt::format("\n{}: what will spoil measurements\n", plural(findings.size(), "finding")) +
         findings_text(findings, ": ");
}

}  // namespace assay::cli
