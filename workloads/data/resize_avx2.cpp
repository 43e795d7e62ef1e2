// Kernels for AVX2 with FMA. Only intrinsics here: this file is compiled for a CPU that may not be present.
#include "workloads/data/resize_kernels.h"

#include <immintrin.h>

namespace assay::data::detail {

namespace {

__m256 widen(const std::uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

void vertical(const std::uint8_t* const* rows, const float* weights, int taps, int count, float* out) {
  for (int i = 0; i < count; i += 32) {
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    for (int tap = 0; tap < taps; ++tap) {
      const std::uint8_t* row = rows[tap] + i;
      const __m256 w = _mm256_broadcast_ss(weights + tap);
      a = _mm256_fmadd_ps(w, widen(row), a);
      b = _mm256_fmadd_ps(w, widen(row + 8), b);
      c = _mm256_fmadd_ps(w, widen(row + 16), c);
      d = _mm256_fmadd_ps(w, widen(row + 24), d);
    }
    _mm256_storeu_ps(out + i, a);
    _mm256_storeu_ps(out + i + 8, b);
    _mm256_storeu_ps(out + i + 16, c);
    _mm256_storeu_ps(out + i + 24, d);
  }
}

__m256 pixel_pair(const float* row, const float* weights, int taps) {
  __m256 sum = _mm256_mul_ps(_mm256_loadu_ps(row), _mm256_load_ps(weights));
  for (int tap = 2; tap < taps; tap += 2)
    sum = _mm256_fmadd_ps(_mm256_loadu_ps(row + tap * 4), _mm256_load_ps(weights + tap * 4), sum);
  return sum;
}

void store_last(float* out, __m128 pixel) {
  _mm_storel_pi(reinterpret_cast<__m64*>(out), pixel);
  _mm_store_ss(out + 2, _mm_movehl_ps(pixel, pixel));
}

void horizontal(const float* row, const int* first, const float* weights, int taps, int outputs, const float* scale,
                const float* bias, float* out) {
  const __m256 s = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(scale));
  const __m256 t = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(bias));
  int o = 0;
  for (; o + 2 < outputs; o += 2, weights += taps * 8, out += 6) {
    const __m256 left = pixel_pair(row + first[o] * 4, weights, taps);
    const __m256 right = pixel_pair(row + first[o + 1] * 4, weights + taps * 4, taps);
    const __m256 both =
        _mm256_add_ps(_mm256_permute2f128_ps(left, right, 0x20), _mm256_permute2f128_ps(left, right, 0x31));
    const __m256 done = _mm256_fmadd_ps(both, s, t);
    // The fourth lane spills into the next pixel, which is written afterwards.
    _mm_storeu_ps(out, _mm256_castps256_ps128(done));
    _mm_storeu_ps(out + 3, _mm256_extractf128_ps(done, 1));
  }
  for (; o < outputs; ++o, weights += taps * 4, out += 3) {
    const __m256 sum = pixel_pair(row + first[o] * 4, weights, taps);
    const __m128 one = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    store_last(out, _mm_fmadd_ps(one, _mm256_castps256_ps128(s), _mm256_castps256_ps128(t)));
  }
}

__m256i rounded(const float* in) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
}

void to_bf16(const float* in, std::uint16_t* out, int count) {
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i packed = _mm256_packus_epi32(rounded(in + i), rounded(in + i + 8));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_permute4x64_epi64(packed, 0xD8));
  }
  if (i < count) generic_kernels.to_bf16(in + i, out + i, count - i);
}

}  // namespace

const ResizeKernels avx2_kernels{"avx2", vertical, horizontal, to_bf16};

}  // namespace assay::data::detail
