// Values that change from step to step. Kept on the device, so that the host never branches on them.
#pragma once

#include <cstdint>

namespace assay::ops {

struct StepState {
  std::int64_t step = 0;  // optimizer steps taken, including this one; starts at 1
  float learning_rate = 0;
  float loss_scale = 1;      // factor by which gradients are too large (fp16)
  float gradient_scale = 1;  // loss_scale / valid targets of the whole step: d(scaled mean loss) / d(summed loss)
  float max_norm = 0;        // limit of the gradients' norm; 0: no clipping
  float norm = 0;            // norm of the unscaled gradients, written by GradientNorm
  float coefficient = 1;     // factor the optimizer applies to gradients: clipping / loss_scale
  std::int32_t found_infinity = 0;  // a gradient was not finite: the optimizer writes nothing
};

}  // namespace assay::ops
