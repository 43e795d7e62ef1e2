// Average pooling, forward, as a cuDNN graph.
#pragma once

#include "harness/core/dtype.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <compare>
#include <cstdint>

namespace assay::ops::cudnn {

// y (N, P, Q, C) from x (N, H, W, C), dense: the average of each window without its padding.
struct AveragePoolGraph {
  std::int64_t n = 1, h = 1, w = 1, c = 1;
  std::int64_t window_h = 1, window_w = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  DType dtype = DType::f32;  // or bf16, fp16

  std::int64_t p() const { return (h + 2 * padding - window_h) / stride + 1; }
  std::int64_t q() const { return (w + 2 * padding - window_w) / stride + 1; }

  auto operator<=>(const AveragePoolGraph&) const = default;
};

// Ids of the tensors.
inline constexpr std::int64_t pool_x = 1, pool_y = 2;

Plans average_pool_plans(const AveragePoolGraph& graph, const Limits& limits);

}  // namespace assay::ops::cudnn
