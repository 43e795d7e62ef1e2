// Scaled dot-product attention, blockwise: no (B, H, T, T) matrix is ever stored.
#pragma once

#include "workloads/ops/op.h"

#include <optional>
#include <string>

namespace assay::ops {

// out = softmax(q k^T * scale + mask) v; head h reads key and value head h / (heads / kv_heads).
// q, k and v may be slices of a wider row (a fused projection): strides are elements from one token to the next.
struct AttentionDesc {
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t head_dim = 0;
  bool causal = true;
  bool lengths = false;  // keys from args.lengths[b] on are masked; query rows from there on give zeros
  double scale = 0;      // 0: 1 / sqrt(head_dim)
  std::int64_t q_stride = 0;
  std::int64_t k_stride = 0;
  std::int64_t v_stride = 0;
  DType dtype = DType::f32;  // f64, f32, tf32 (f32 as stored), bf16, fp16

  bool operator==(const AttentionDesc&) const = default;
};

// Why no device could make this op; nothing if it is valid.
std::optional<std::string> problem_of(const AttentionDesc& desc);

class AttentionForward : public OpOf<AttentionDesc> {
 public:
  struct Args {
    const void* q = nullptr;                // (B, T, H, D), q_stride from token to token
    const void* k = nullptr;                // (B, T, KV, D)
    const void* v = nullptr;                // (B, T, KV, D)
    const std::int32_t* lengths = nullptr;  // (B)
    void* out = nullptr;                    // (B, T, H, D), dense
    void* log_sum_exp = nullptr;            // (B, H, T) f32 (f64 for f64), for the backward pass
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

class AttentionBackward : public OpOf<AttentionDesc> {
 public:
  struct Args {
    const void* q = nullptr;
    const void* k = nullptr;
    const void* v = nullptr;
    const std::int32_t* lengths = nullptr;
    const void* out = nullptr;   // (B, T, H, D)
    const void* dout = nullptr;  // (B, T, H, D)
    const void* log_sum_exp = nullptr;
    void* dq = nullptr;  // strides as q, k, v
    void* dk = nullptr;
    void* dv = nullptr;
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
