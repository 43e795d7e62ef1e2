// Batch norm as cuDNN graphs.
#pragma once

#include "harness/core/dtype.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <compare>
#include <cstdint>
#include <string>

namespace assay::ops::cudnn {

// Described by BatchNormDesc: x, residual and y are (rows, channels), dense, of `dtype`; the others are f32 (channels).
// Training: batch norm that saves its statistics and writes updated running statistics to other tensors than it reads.
// Evaluation: elementwise operations on the running statistics.
struct BatchNormGraph {
  std::int64_t rows = 1, channels = 1;
  DType dtype = DType::f32;  // or bf16, fp16
  bool relu = false;
  bool residual = false;
  bool training = true;
  float epsilon = 1e-5f;
  float momentum = 0.1f;

  auto operator<=>(const BatchNormGraph&) const = default;
};

// Ids of the tensors; those from saved_mean on exist only in training.
inline constexpr std::int64_t batch_norm_x = 1, batch_norm_residual = 2, batch_norm_scale = 3, batch_norm_shift = 4,
                              batch_norm_running_mean = 5, batch_norm_running_variance = 6, batch_norm_y = 7,
                              batch_norm_saved_mean = 8, batch_norm_saved_inverse_deviation = 9,
                              batch_norm_next_mean = 10, batch_norm_next_variance = 11;

// All members as text; equal for equal graphs.
std::string key_of(const BatchNormGraph& graph);

Plans batch_norm_forward_plans(const BatchNormGraph& graph, const Limits& limits);

// Described by BatchNormDesc, in training: alone, or behind ReLU with a residual, whose gradient is written; ReLU's
// mask is y > 0. cuDNN has nothing for ReLU alone.
struct BatchNormGradientGraph {
  std::int64_t rows = 1, channels = 1;
  DType dtype = DType::f32;  // or bf16, fp16
  bool relu_and_residual = false;
  bool two_gradients = false;  // allowed only with relu_and_residual

  auto operator<=>(const BatchNormGradientGraph&) const = default;
};

// Ids of its additional tensors.
inline constexpr std::int64_t batch_norm_dy = 12, batch_norm_dy_other = 13, batch_norm_dx = 14,
                              batch_norm_dresidual = 15, batch_norm_dscale = 16, batch_norm_dshift = 17;

std::string key_of(const BatchNormGradientGraph& graph);

Plans batch_norm_backward_plans(const BatchNormGradientGraph& graph, const Limits& limits);

}  // namespace assay::ops::cudnn
