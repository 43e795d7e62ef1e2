// The parts of the parameters' arrays that a rank holds, by name.
#pragma once

#include "workloads/nn/step_memory.h"
#include "workloads/nn/training_step.h"

#include <cstdint>
#include <vector>

namespace assay::nn {

// Masters, moments and running statistics.
std::vector<StatePart> model_state(const StepPlan& plan, const StepMemory& memory);
// After a step, of what the rank updates.
std::vector<StatePart> reduced_gradients(const StepPlan& plan, const StepMemory& memory);

// The initial weights of a model.

// Sets weights by their ParameterSpec, each element as a function of seed, parameter name and index. Moments become
// zero, and running statistics those of a standard normal distribution.
void initialise_weights(const StepPlan& plan, const StepMemory& memory, std::uint64_t seed, Device& device,
                        Stream& stream);

}  // namespace assay::nn
