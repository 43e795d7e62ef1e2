// The initial weights of a model.
#pragma once

#include "workloads/nn/step_memory.h"

#include <cstdint>

namespace assay::nn {

// Weights by their ParameterSpec, each element a function of seed, parameter name and index; moments are zero, running
// statistics those of a standard normal.
void initialise_weights(const StepPlan& plan, const StepMemory& memory, std::uint64_t seed, Device& device,
                        Stream& stream);

}  // namespace assay::nn
