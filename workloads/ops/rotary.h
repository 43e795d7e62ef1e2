// Rotary position embedding, in place.
#pragma once

#include "workloads/ops/op.h"

#include <optional>
#include <string>

namespace assay::ops {

// Rotates the pairs (x[i], x[i + D/2]) of each head by the angle of its token's position, as in Llama's published
// weights; `inverse` rotates back, which is the gradient. The first `heads` heads of a row are rotated.
struct RotaryDesc {
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;  // even
  std::int64_t stride = 0;    // elements from one token to the next
  bool inverse = false;
  DType dtype = DType::f32;

  bool operator==(const RotaryDesc&) const = default;
};

// Why no device could make this op; nothing if it is valid.
std::optional<std::string> problem_of(const RotaryDesc& desc);

class Rotary : public OpOf<RotaryDesc> {
 public:
  struct Args {
    void* x = nullptr;             // (B, T, heads, D), `stride` from token to token
    const void* cosine = nullptr;  // (T, D/2) f32 (f64 for f64)
    const void* sine = nullptr;    // (T, D/2)
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
