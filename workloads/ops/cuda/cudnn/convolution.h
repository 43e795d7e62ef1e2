// A convolution as a cuDNN graph.
#pragma once

#include "workloads/ops/conv.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <compare>
#include <cstdint>
#include <string>

namespace assay::ops::cudnn {

enum class ConvolutionPass { forward, backward_data, backward_weights };

// x (N, H, W, C), w (K, R, S, C / groups), y (N, P, Q, K), all dense; two of them are read and the third is written.
struct ConvolutionGraph : ConvDesc {
  ConvolutionPass pass = ConvolutionPass::forward;

  DType weights() const { return pass == ConvolutionPass::backward_weights ? gradient : dtype; }

  auto operator<=>(const ConvolutionGraph&) const = default;
};

// Ids of the tensors.
inline constexpr std::int64_t convolution_x = 1, convolution_w = 2, convolution_y = 3;

// All members as text; equal for equal graphs.
std::string key_of(const ConvolutionGraph& graph);

// dtype f32, tf32 (stored as f32), bf16, fp16.
Plans convolution_plans(const ConvolutionGraph& graph, const Limits& limits);

}  // namespace assay::ops::cudnn
