// Pooling by our own vectorised kernels, in f32 and bf16.
#pragma once

#include "workloads/ops/pool.h"

namespace assay::ops {

Made<PoolForward> make_pool_forward(const PoolDesc& desc);
Made<PoolBackward> make_pool_backward(const PoolDesc& desc);

}  // namespace assay::ops
