// Average pooling, forward, as a cuDNN graph.
#pragma once

#include "workloads/ops/cuda/cudnn/plan.h"
#include "workloads/ops/pool.h"

#include <cstdint>
#include <string>

namespace assay::ops {

// All members as text; equal for equal graphs.
std::string key_of(const PoolDesc& desc);

namespace cudnn {

// Ids of the tensors.
inline constexpr std::int64_t pool_x = 1, pool_y = 2;

Plans average_pool_plans(const PoolDesc& desc, const Limits& limits);

}  // namespace cudnn

}  // namespace assay::ops
