// The initial weights of a model.
#pragma once

#include "workloads/nn/step_memory.h"

#include <cstdint>

namespace assay::nn {

// Sets weights by their ParameterSpec, each element as a function of seed, parameter name and index. Moments become
// zero, and running statistics those of a standard normal distribution.
void initialise_weights(const StepPlan& plan, const StepMemory& memory, std::uint64_t seed, Device& device,
                        Stream& stream);

}  // namespace assay::nn
