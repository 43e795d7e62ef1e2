// The few words that change from step to step, together on the device.
#pragma once

#include "workloads/ops/cross_entropy.h"
#include "workloads/ops/step_state.h"

namespace assay::nn {

struct StepBlock {
  ops::StepState state;
  ops::LossSums sums;  // of this rank; once reduced, of all
};

}  // namespace assay::nn
