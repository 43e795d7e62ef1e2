// Prints the audit of one machine.
#include "cli/env_audit.h"

#include "harness/core/utc.h"
#include "harness/core/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace assay::cli {

namespace {

// `before_device`: what stands between a finding's id and its device.
void print_findings(const std::vector<Finding>& findings, std::string_view before_device) {
  for (const Finding& one : findings) {
    fmt::print("  {:<7}  {}{}{}: {}\n", word_of(one.severity), one.id, one.device.empty() ? "" : before_device,
               one.device, one.seen);
    fmt::print("           so: {}\n           fix: {}\n", one.meaning, one.fix);
  }
}

void print_events(const std::vector<KernelEvent>& events) {
  std::int64_t messages = 0;
  for (const auto& event : events) messages += event.count;
  fmt::print("\n{} message{} of the kernel in the last 7 days\n", messages, messages == 1 ? "" : "s");
  for (const auto& event : events) {
    const auto when = event.unix_seconds ? utc_text(static_cast<std::time_t>(*event.unix_seconds)) : "time unknown";
    fmt::print("  {:<9} {}{}{} x, last {}: {}\n", event.kind, event.device, event.device.empty() ? "" : ", ",
               event.count, when, event.text);
  }
}

}  // namespace

audit::Audit audit_now(const Root& root) { return audit::audit_machine(root, static_cast<double>(std::time(nullptr))); }

void print_audit(const AuditedMachine& audit) {
  const auto count = [&](Severity severity) {
    return std::ranges::count(audit.problems, severity, &Finding::severity);
  };
  const auto plural = [](auto n) { return n == 1 ? "" : "s"; };
  const auto faults = count(Severity::fault), warnings = count(Severity::warning), remarks = count(Severity::info);
  fmt::print("\naudit: {} fault{}, {} warning{}, {} remark{}\n", faults, plural(faults), warnings, plural(warnings),
             remarks, plural(remarks));
  print_findings(audit.problems, " ");
  if (!audit.events.empty()) print_events(audit.events);
}

void print_spoilers(const std::vector<Finding>& findings) {
  if (findings.empty()) return fmt::print("\nnothing here is known to spoil measurements\n");
  fmt::print("\n{} finding{}: what will spoil measurements\n", findings.size(), findings.size() == 1 ? "" : "s");
  print_findings(findings, ": ");
}

}  // namespace assay::cli
