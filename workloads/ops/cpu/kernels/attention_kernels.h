// Blockwise attention of one key and value head of one sequence; kernels of attention.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// One key and value head and the `group` query heads that read it. Strides are elements from token to token; query
// heads are contiguous. Keys and queries from `length` on are masked.
struct AttentionHead {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const void* out = nullptr;  // read by the backward pass
  const void* dout = nullptr;
  void* to_out = nullptr;        // written by the forward pass
  float* log_sum_exp = nullptr;  // (group, seq)
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  float* scratch = nullptr;
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, out_stride = 0;
  std::int64_t seq = 0;
  std::int64_t length = 0;
  std::int64_t head_dim = 0;
  std::int64_t group = 1;
  bool causal = true;
  float scale = 1;
  int part = 0, parts = 1;  // forward: this call computes every parts-th block of queries
};

struct AttentionKernels {
  using Pass = void (*)(const AttentionHead&);
  using ScratchFloats = std::int64_t (*)(std::int64_t seq, std::int64_t head_dim);
  struct Type {
    Pass forward, backward;
    ScratchFloats forward_scratch, backward_scratch;
  };
  Type f32, bf16;
};

}  // namespace assay::ops
