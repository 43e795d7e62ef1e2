// Entries put together as readers think of them: by machine, and the same case over several runs of one machine.
#pragma once

#include "reports/data/machine.h"
#include "reports/data/run_set.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace assay::report {

// One case on one machine: equal identity but for the hosts, and equal protocol.
struct CaseRuns {
  std::vector<const Entry*> entries;  // in the RunSet's order, never empty
  const Entry& newest() const { return *entries.back(); }
};

// Runs of one machine under equal labels, in the RunSet's order: the newest is the last.
struct MachineRuns {
  Machine machine;
  Attributes labels;              // --label K=V
  std::vector<std::size_t> runs;  // in RunSet::runs(), never empty
  std::vector<CaseRuns> cases;    // in order of first appearance, the newest run first
  std::string title;  // "AMD Zen 4, 2 cores · vm · side=a"; told apart from the others by number where they are equal
};

// Labels of the plan and of --label, as run.json has them.
Attributes labels_of(const RunData& run);

// Machines are equal when name and hosts are; hosts come from the records where run.json does not tell them. Found once
// for a RunSet, which keeps them.
const std::vector<MachineRuns>& by_machine(const RunSet& runs);

// Whether machines are hosts of one run: a terminal shows them beside each other, files have the tables of each too.
bool hosts_of_one_run(const RunSet& runs);

}  // namespace assay::report
