// Operations that GCC's vector extensions express badly, for AVX-512 (F, BW, DQ, VL) with BF16.
#pragma once

#include "harness/device/cpu/vector/avx512.h"

namespace assay::vector {
namespace {

// Rounds to nearest even, NaN stays NaN; subnormal numbers become zero.
inline Halves to_bf16(Float x) {
  const __m256bh packed = _mm512_cvtneps_pbh(x);
  Halves halves;
  __builtin_memcpy(&halves, &packed, sizeof halves);
  return halves;
}

// sum + a * b over the pairs of bf16 in each lane, the first of a pair in the lower half.
inline Float add_pairs(Float sum, Bits a, Bits b) {
  __m512bh x, y;
  __builtin_memcpy(&x, &a, sizeof x);
  __builtin_memcpy(&y, &b, sizeof y);
  return _mm512_dpbf16_ps(sum, x, y);
}

}  // namespace
}  // namespace assay::vector
