// Batch norm by our own vectorised kernels, in f32 and bf16.
#pragma once

#include "workloads/ops/batch_norm.h"

namespace assay::ops {

Made<BatchNormForward> make_batch_norm_forward(const BatchNormDesc& desc);
Made<BatchNormBackward> make_batch_norm_backward(const BatchNormDesc& desc);

}  // namespace assay::ops
