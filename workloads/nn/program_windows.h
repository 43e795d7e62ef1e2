// When a program has divided buckets whole in the arena.
#pragma once

#include "workloads/nn/step_plan.h"

#include <optional>

namespace assay::nn {

// Moves the tensors of buckets that the rank does not hold whole to slots, and adds the program's windows. Weights of a
// run of uses of one bucket are gathered from the start of the run before it on, so that two are whole at a time;
// gradients of a bucket are reduced until the next bucket is complete.
void add_windows(Program& program, const StepPlan& plan);

// The array behind a region; nothing if the region does not hold parameters.
std::optional<Array> array_of(Region region);

}  // namespace assay::nn
