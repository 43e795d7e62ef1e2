// Common to AVX-512 (F, BW, DQ, VL) with and without BF16.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace assay::vector {
namespace {

constexpr int lanes = 16;
using Float = float __attribute__((vector_size(lanes * 4)));
using Bits = std::uint32_t __attribute__((vector_size(lanes * 4)));
using Halves = std::uint16_t __attribute__((vector_size(lanes * 2)));

inline Float square_root(Float x) { return _mm512_sqrt_ps(x); }

// 16 bits per lane, in the lower half of each.
inline Bits widen(Halves x) { return Bits(_mm512_cvtepu16_epi32(__m256i(x))); }
inline Halves narrow(Bits x) { return Halves(_mm512_cvtepi32_epi16(__m512i(x))); }

// Non-temporal stores; `p` is aligned to the stored size. Call fence() before others read it.
inline void stream(float* p, Float x) { _mm512_stream_ps(p, x); }
inline void stream(std::uint16_t* p, Halves x) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), __m256i(x)); }
inline void fence() { _mm_sfence(); }

}  // namespace
}  // namespace assay::vector
