// The parts of the parameters' arrays that a rank holds, by name.
#pragma once

#include "workloads/nn/step_memory.h"
#include "workloads/nn/training_step.h"

#include <vector>

namespace assay::nn {

// Masters, moments and running statistics.
std::vector<StatePart> model_state(const StepPlan& plan, const StepMemory& memory);
// After a step, of what the rank updates.
std::vector<StatePart> reduced_gradients(const StepPlan& plan, const StepMemory& memory);

}  // namespace assay::nn
