// What GCC's vector extensions do not say well, for AVX-512 (F, BW, DQ, VL) with BF16.
#pragma once

#include "harness/device/cpu/vector/avx512.h"

namespace assay::vector {
namespace {

// Rounds to nearest even, NaN stays NaN; numbers below the smallest normal one become zero.
inline Halves to_bf16(Float x) {
  const __m256bh packed = _mm512_cvtneps_pbh(x);
  Halves halves;
  __builtin_memcpy(&halves, &packed, sizeof halves);
  return halves;
}

}  // namespace
}  // namespace assay::vector
