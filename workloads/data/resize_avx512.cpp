// Kernels for AVX-512 (F, BW, VL, DQ). Only intrinsics here: this file is compiled for a CPU that may not be present.
#include "workloads/data/resize_kernels.h"

#include <immintrin.h>

namespace assay::data::detail {

namespace {

__m512 widen(const std::uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

void vertical(const std::uint8_t* const* rows, const float* weights, int taps, int count, float* out) {
  for (int i = 0; i < count; i += 64) {
    __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
    for (int tap = 0; tap < taps; ++tap) {
      const std::uint8_t* row = rows[tap] + i;
      const __m512 w = _mm512_set1_ps(weights[tap]);
      a = _mm512_fmadd_ps(w, widen(row), a);
      b = _mm512_fmadd_ps(w, widen(row + 16), b);
      c = _mm512_fmadd_ps(w, widen(row + 32), c);
      d = _mm512_fmadd_ps(w, widen(row + 48), d);
    }
    _mm512_storeu_ps(out + i, a);
    _mm512_storeu_ps(out + i + 16, b);
    _mm512_storeu_ps(out + i + 32, c);
    _mm512_storeu_ps(out + i + 48, d);
  }
}

// Four taps at a time: the sum of the four 128-bit lanes is the pixel.
__m512 pixel_lanes(const float* row, const float* weights, int taps) {
  __m512 sum = _mm512_mul_ps(_mm512_loadu_ps(row), _mm512_load_ps(weights));
  for (int tap = 4; tap < taps; tap += 4)
    sum = _mm512_fmadd_ps(_mm512_loadu_ps(row + tap * 4), _mm512_load_ps(weights + tap * 4), sum);
  return sum;
}

// Lanes a0+a2, a1+a3, b0+b2, b1+b3.
__m512 fold(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
}

void horizontal(const float* row, const int* first, const float* weights, int taps, int outputs, const float* scale,
                const float* bias, float* out) {
  const __m512 s = _mm512_broadcast_f32x4(_mm_loadu_ps(scale));
  const __m512 t = _mm512_broadcast_f32x4(_mm_loadu_ps(bias));
  const __m512i drop_fourth = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0);
  const int step = taps * 4;
  int o = 0;
  for (; o + 4 <= outputs; o += 4, weights += step * 4, out += 12) {
    const __m512 ab =
        fold(pixel_lanes(row + first[o] * 4, weights, taps), pixel_lanes(row + first[o + 1] * 4, weights + step, taps));
    const __m512 cd = fold(pixel_lanes(row + first[o + 2] * 4, weights + step * 2, taps),
                           pixel_lanes(row + first[o + 3] * 4, weights + step * 3, taps));
    const __m512 sum = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
    const __m512 done = _mm512_fmadd_ps(sum, s, t);
    _mm512_mask_storeu_ps(out, 0x0FFF, _mm512_permutexvar_ps(drop_fourth, done));
  }
  for (; o < outputs; ++o, weights += step, out += 3) {
    const __m512 lanes = pixel_lanes(row + first[o] * 4, weights, taps);
    const __m512 half = _mm512_add_ps(lanes, _mm512_shuffle_f32x4(lanes, lanes, 0x4E));
    const __m512 sum = _mm512_add_ps(half, _mm512_shuffle_f32x4(half, half, 0xB1));
    _mm512_mask_storeu_ps(out, 0x0007, _mm512_fmadd_ps(sum, s, t));
  }
}

void to_bf16(const float* in, std::uint16_t* out, int count) {
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512i bits = _mm512_loadu_si512(in + i);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtepi32_epi16(_mm512_srli_epi32(sum, 16)));
  }
  if (i < count) generic_kernels.to_bf16(in + i, out + i, count - i);
}

}  // namespace

const ResizeKernels avx512_kernels{"avx512", vertical, horizontal, to_bf16};

}  // namespace assay::data::detail
