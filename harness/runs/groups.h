// Entries grouped by machine, and within a machine by case over its runs.
#pragma once

#include "harness/runs/machine.h"
#include "harness/runs/run_set.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace assay {

// One case on one machine: same identity (apart from hosts) and same protocol.
struct CaseRuns {
  std::vector<const Entry*> entries;  // in the RunSet's order, never empty
  const Entry& newest() const { return *entries.back(); }
};

// Runs of one machine under equal labels, in the RunSet's order: newest last.
struct MachineRuns {
  RunMachine machine;
  Attributes labels;              // --label K=V
  std::vector<std::size_t> runs;  // in RunSet::runs(), never empty
  std::vector<CaseRuns> cases;    // in order of first appearance, the newest run first
  std::string title;              // "AMD Zen 4, 2 cores · vm · side=a"; numbered if several are equal
  std::string name;               // for pictures and heads of columns, each once: "p5.48xlarge", "AMD Zen 4 · vm"
};

// Labels of the plan and of --label, from run.json.
Attributes labels_of(const RunData& run);

// Machines are equal if name and hosts are; hosts come from the records if run.json does not list them. Computed once
// per RunSet, which caches it.
const std::vector<MachineRuns>& by_machine(const RunSet& runs);

// Whether the machines are hosts of one run: a terminal then shows them side by side; files also have each one's
// tables.
bool hosts_of_one_run(const RunSet& runs);

}  // namespace assay
