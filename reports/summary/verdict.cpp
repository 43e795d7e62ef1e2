#include "reports/summary/verdict.h"

#include "harness/runs/groups.h"
#include "reports/model/words.h"
#include "reports/summary/machine_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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

}  // namespace assay::report
