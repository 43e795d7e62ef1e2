// A convolution as a cuDNN graph.
#pragma once

#include "harness/core/dtype.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <compare>
#include <cstdint>

namespace assay::ops::cudnn {

enum class ConvolutionPass { forward, backward_data, backward_weights };

// x (N, H, W, C), w (K, R, S, C / groups), y (N, P, Q, K), all dense; two of them are read and the third is written.
struct ConvolutionGraph {
  ConvolutionPass pass = ConvolutionPass::forward;
  std::int64_t n = 1, h = 1, w = 1, c = 1;
  std::int64_t k = 1, r = 1, s = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  DType dtype = DType::f32;     // of x and y, and of w if it is read; sums are f32
  DType gradient = DType::f32;  // of w if it is written

  std::int64_t p() const { return (h + 2 * padding - r) / stride + 1; }
  std::int64_t q() const { return (w + 2 * padding - s) / stride + 1; }
  DType weights() const { return pass == ConvolutionPass::backward_weights ? gradient : dtype; }

  auto operator<=>(const ConvolutionGraph&) const = default;
};

// Ids of the tensors.
inline constexpr std::int64_t convolution_x = 1, convolution_w = 2, convolution_y = 3;

// dtype f32, tf32 (stored as f32), bf16, fp16.
Plans convolution_plans(const ConvolutionGraph& graph, const Limits& limits);

}  // namespace assay::ops::cudnn
