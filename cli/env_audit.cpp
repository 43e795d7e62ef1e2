// Prints the audit of one machine.
#include "cli/env_audit.h"

#include "harness/core/utc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <tuple>

namespace assay::cli {

namespace {

void print_events(const std::vector<audit::KernelEvent>& events) {
  struct Line {
    int count = 0;
    const audit::KernelEvent* last = nullptr;
  };
  std::map<std::tuple<std::string, std::string, std::int64_t>, Line> lines;
  for (const auto& event : events) {
    Line& line = lines[{event.kind, event.device, event.code}];
    ++line.count;
    line.last = &event;
  }
  fmt::print("\n{} message{} of the kernel in the last 7 days\n", events.size(), events.size() == 1 ? "" : "s");
  for (const auto& [key, line] : lines) {
    const auto& [kind, device, code] = key;
    const auto when =
        line.last->unix_seconds ? utc_text(static_cast<std::time_t>(*line.last->unix_seconds)) : "time unknown";
    fmt::print("  {:<9} {}{}{} x, last {}: {}\n", kind, device, device.empty() ? "" : ", ", line.count, when,
               line.last->text);
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
