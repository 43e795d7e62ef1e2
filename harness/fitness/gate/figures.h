// What floors make of the figures of one run of a gate's test.
#pragma once

#include "harness/fitness/floors/floors.h"
#include "harness/fitness/gate/decision.h"
#include "harness/runs/run_set.h"

#include <set>
#include <span>
#include <string>

namespace assay::gate {

struct FloorsOfTest {
  const fitness::Floors& floors;
  std::span<const std::string> families;  // that this build knows
  double withheld_cpus = 0;               // by a quota
  bool crowded = false;                   // see Repetition
};
// Adds to `outcome` a repetition of every figure in `runs` that a floor limits, and to `used` which floors these were.
// Returns why a floor could not judge a record that it is for; empty if all could.
std::string add_repetitions(const RunSet& runs, const FloorsOfTest& by, TestOutcome& outcome,
                            std::set<std::string>& used);

}  // namespace assay::gate
