// Prints the audit of one machine.
#include "cli/env_audit.h"

#include "harness/core/utc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace assay::cli {

namespace {

void print_events(const std::vector<audit::KernelEvent>& events) {
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

bool has_fault(const audit::Audit& audit) {
  return std::ranges::any_of(audit.problems, [](const auto& each) { return each.severity == audit::Severity::fault; });
}

void print_audit(const audit::Audit& audit) {
  std::array<int, 3> counts{};
  for (const auto& problem : audit.problems) ++counts[static_cast<std::size_t>(problem.severity)];
  const auto plural = [](int count) { return count == 1 ? "" : "s"; };
  fmt::print("\naudit: {} fault{}, {} warning{}, {} remark{}\n", counts[0], plural(counts[0]), counts[1],
             plural(counts[1]), counts[2], plural(counts[2]));
  for (const auto& problem : audit.problems) {
    fmt::print("  {:<7}  {}{}{}: {}\n", name_of(problem.severity), problem.id, problem.device.empty() ? "" : " ",
               problem.device, problem.seen);
    fmt::print("           so: {}\n           fix: {}\n", problem.meaning, problem.fix);
  }
  if (!audit.events.empty()) print_events(audit.events);
}

}  // namespace assay::cli
