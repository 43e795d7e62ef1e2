// What changes from step to step, on the device, so that no step branches on the host.
#pragma once

#include <cstdint>

namespace assay::ops {

struct StepState {
  std::int64_t step = 0;  // optimizer steps taken, this one included; starts at 1
  float learning_rate = 0;
  float loss_scale = 1;             // gradients are this many times too large (fp16)
  float gradient_scale = 1;         // loss_scale / valid targets of the whole step: the loss's own gradient
  float max_norm = 0;               // of the gradients; 0: they are not clipped
  float norm = 0;                   // of the unscaled gradients, written by GradientNorm
  float coefficient = 1;            // what the optimizer multiplies gradients by: clipping / loss_scale
  std::int32_t found_infinity = 0;  // a gradient was not finite: the optimizer writes nothing
};

}  // namespace assay::ops
