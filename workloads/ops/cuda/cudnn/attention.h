// Scaled dot-product attention as a cuDNN graph.
#pragma once

#include "harness/core/dtype.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <compare>
#include <cstdint>
#include <string>

namespace assay::ops::cudnn {

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

}  // namespace assay::ops::cudnn
