// The operations that Assay gives to cuDNN, as graphs.
#pragma once

#include "harness/core/dtype.h"
#include "workloads/ops/batch_norm.h"
#include "workloads/ops/conv.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace assay::ops::cudnn {

// Scaled dot-product attention as a cuDNN graph.

// q (B, T, H, D) with tokens `q_stride` elements apart, k and v (B, T, KV, D) likewise, out and dout dense; gradients
// have the layouts of q, k and v. log_sum_exp is (B, H, T), f32, natural logarithm. With `lengths`, int32 (B), keys and
// queries beyond them are masked, and what is written for those queries is undefined.
struct AttentionGraph {
  bool backward = false;
  std::int64_t batch = 1, seq = 1, heads = 1, kv_heads = 1, head_dim = 1;
  std::int64_t q_stride = 1, k_stride = 1, v_stride = 1;
  bool causal = true;
  bool lengths = false;
  float scale = 1;
  DType dtype = DType::bf16;  // or fp16

  auto operator<=>(const AttentionGraph&) const = default;
};

// Ids of the tensors.
inline constexpr std::int64_t attention_q = 1, attention_k = 2, attention_v = 3, attention_out = 4,
                              attention_log_sum_exp = 5, attention_lengths = 6, attention_dout = 7, attention_dq = 8,
                              attention_dk = 9, attention_dv = 10;

// All members as text; equal for equal graphs.
std::string key_of(const AttentionGraph& graph);

// Backward with Limits.deterministic sums dq in a fixed order, by storing the gradient of all scores in 16 bits.
Plans attention_plans(const AttentionGraph& graph, const Limits& limits);

// Batch norm as cuDNN graphs.

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

BatchNormGraph batch_norm_graph_of(const BatchNormDesc& desc);

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

// Nothing if cuDNN has no such graph.
std::optional<BatchNormGradientGraph> batch_norm_gradient_graph_of(const BatchNormDesc& desc);

Plans batch_norm_backward_plans(const BatchNormGradientGraph& graph, const Limits& limits);

// A convolution as a cuDNN graph.
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
