#include "reports/summary/machine_line.h"

#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/machine/finding.h"
#include "harness/runs/machine.h"
#include "reports/model/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

namespace {

// The sum of the times that the records themselves took.
double busy_seconds(const RunData& run) {
  double seconds = 0;
  for (const Record& record : run.records) seconds += record.seconds;
  return seconds;
}

std::string plan_text(const RunData& run, std::size_t count) {
  const std::string name = text_member(run.run, "/plan/name");
  const auto seconds = number_member(run.run, "/seconds");
  const std::string cases = plural(count, "case");
  const std::string time = " in " + format_seconds(seconds ? *seconds : busy_seconds(run));
  return (name.empty() ? "" : "plan " + name + ", ") + cases + time;
}

}  // namespace

std::string machine_line(const RunSet& runs, std::size_t run_index) {
  const RunData& run = runs.runs()[run_index];
  std::vector<std::string> parts;
  if (const std::string machine = machine_of(run).name; !machine.empty()) parts.push_back(machine);
  parts.push_back(plan_text(run, runs.entries_of(run_index).size()));
  const std::vector<Finding> findings = read_spoilers(member(run.run, "/findings"));
  if (const auto warnings = std::ranges::count(findings, Severity::warning, &Finding::severity); warnings > 0)
    parts.push_back(plural(warnings, "finding") + " (assay env)");
  return fmt::format("{}", fmt::join(parts, " · "));
}

}  // namespace assay::report
