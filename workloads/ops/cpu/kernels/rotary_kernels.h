// Rotary embedding of one token; kernels of rotary.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// Rotates each pair (x[i], x[i + half]) of x (heads, 2 * half) in place, by the angle with the given cosine and sine
// (half); `sign` -1 rotates back.
struct RotaryKernels {
  using Token = void (*)(void* x, const float* cosine, const float* sine, std::int64_t heads, std::int64_t half,
                         float sign);
  Token f32, bf16;
};

}  // namespace assay::ops
