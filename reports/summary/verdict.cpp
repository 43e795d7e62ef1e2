#include "reports/summary/verdict.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/json/json.h"
#include "harness/machine/finding.h"
#include "harness/runs/groups.h"
#include "harness/runs/machine.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

RunVerdict verdict_of(const RunSet& runs) {
  std::map<Status, int> counts;
  for (const Entry& entry : runs.entries()) ++counts[entry.record->status];
  RunVerdict verdict;
  verdict.line = fmt::format("held: {} · failed: {}", counts[Status::ok], counts[Status::failed]);
  if (counts[Status::error] > 0) verdict.line += fmt::format(" · broken: {}", counts[Status::error]);
  verdict.line += fmt::format(" · skipped: {}", counts[Status::skipped]);
  std::size_t unreadable = 0;
  for (const RunData& run : runs.runs()) unreadable += run.problems.size();
  if (unreadable > 0) verdict.line += fmt::format(" · {} not read", plural(unreadable, "line"));
  const bool bad = counts[Status::failed] + counts[Status::error] > 0;
  verdict.tone = bad ? Tone::bad : unreadable > 0 ? Tone::warn : runs.entries().empty() ? Tone::plain : Tone::good;
  if (runs.runs().size() == 1) {
    verdict.headline = machine_line(runs, 0);
  } else if (runs.directories() == 1) {
    verdict.headline = fmt::format("{} hosts · {}", runs.runs().size(), machine_line(runs, 0));
  } else {
    const std::vector<MachineRuns>& machines = by_machine(runs);
    verdict.headline = fmt::format("{} runs of {}", runs.runs().size(),
                                   machines.size() == 1 ? machines.front().title : plural(machines.size(), "machine"));
  }
  return verdict;
}

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
  return joined(parts, " · ");
}

}  // namespace assay::report
