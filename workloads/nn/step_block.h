// The scalars that change with every step, in one block on the device.
#pragma once

#include "workloads/ops/cross_entropy.h"
#include "workloads/ops/step_state.h"

namespace assay::nn {

struct StepBlock {
  ops::StepState state;
  ops::LossSums sums;  // sums of this rank; after the reduction, of all ranks
};

}  // namespace assay::nn
