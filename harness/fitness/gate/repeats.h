// Which figures of a gate are measured again, until it is sure of them or the budget ends.
#pragma once

#include "harness/fitness/gate/decision.h"

#include <vector>

namespace assay::gate {

// The most repetitions of a figure.
inline constexpr int max_repetitions = 2 * static_cast<int>(needed_repetitions);

struct Repeats {
  // Outcomes of one test each, which are measured at the same time; those of a test to be run alone by themselves.
  std::vector<std::vector<TestOutcome*>> groups;
  double seconds = 0;  // that all of them take
};

// Those of the planned tests that passed with a figure that did not hold and a verdict that may still change, as many
// as fit in `left` seconds. `done`: repetitions so far.
Repeats doubtful(std::vector<TestOutcome>& outcomes, const std::vector<const Test*>& planned, double left, int done);

}  // namespace assay::gate
