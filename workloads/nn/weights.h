// The first weights of a model.
#pragma once

#include "workloads/nn/step_memory.h"

#include <cstdint>

namespace assay::nn {

// Weights by their ParameterSpec, each element f(seed, parameter's name, index); moments zero, running statistics those
// of a standard normal.
void initialise_weights(const StepPlan& plan, const StepMemory& memory, std::uint64_t seed, Device& device,
                        Stream& stream);

}  // namespace assay::nn
