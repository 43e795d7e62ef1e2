// Operations that GCC's vector extensions express badly, for AVX2 with FMA.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace assay::vector {
namespace {

constexpr int lanes = 8;
using Float = float __attribute__((vector_size(lanes * 4)));
using Bits = std::uint32_t __attribute__((vector_size(lanes * 4)));
using Halves = std::uint16_t __attribute__((vector_size(lanes * 2)));

inline Float square_root(Float x) { return _mm256_sqrt_ps(x); }

// 16 bits per lane, in the lower half of each.
inline Bits widen(Halves x) { return Bits(_mm256_cvtepu16_epi32(__m128i(x))); }
inline Halves narrow(Bits x) {
  const __m256i packed = _mm256_packus_epi32(__m256i(x), __m256i(x));
  return Halves(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

// Non-temporal stores; `p` is aligned to the stored size. Call fence() before others read it.
inline void stream(float* p, Float x) { _mm256_stream_ps(p, x); }
inline void stream(std::uint16_t* p, Halves x) { _mm_stream_si128(reinterpret_cast<__m128i*>(p), __m128i(x)); }
inline void fence() { _mm_sfence(); }

}  // namespace
}  // namespace assay::vector

#include "harness/device/cpu/vector/round_bf16.h"
