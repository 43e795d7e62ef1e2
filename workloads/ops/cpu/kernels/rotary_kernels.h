// Rotary embedding of one token; the table behind rotary.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// x (heads, 2 * half) in place: (x[i], x[i + half]) turns by the angle whose cosine and sine (half) are given; `sign`
// -1 turns back.
struct RotaryKernels {
  using Token = void (*)(void* x, const float* cosine, const float* sine, std::int64_t heads, std::int64_t half,
                         float sign);
  Token f32, bf16;
};

}  // namespace assay::ops
