// exp, tanh, sigmoid and the normal distribution of floats without libm: branch-free, so that loops over them
// vectorise, and bitwise equal on every platform, because every multiply-add is an explicit fma. Doubles use libm.
// Kernel files need -fno-math-errno -fno-trapping-math; otherwise GCC does not vectorise sqrt and, for AVX2,
// selections. Polynomials are minimax fits made for these functions; errors are in ulp against libm in double.
#pragma once

#include "workloads/ops/functors/host_device.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace assay::ops::functors {

ASSAY_HOST_DEVICE inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
ASSAY_HOST_DEVICE inline double fma(double a, double b, double c) { return std::fma(a, b, c); }
ASSAY_HOST_DEVICE inline float sqrt(float x) { return std::sqrt(x); }
ASSAY_HOST_DEVICE inline double sqrt(double x) { return std::sqrt(x); }

namespace detail {

// x = count * ln 2 + rest, |rest| <= ln 2 / 2; for |x| < about 2^21.
struct Reduced {
  std::uint32_t count;  // two's complement
  float rest;
};

ASSAY_HOST_DEVICE inline Reduced reduce(float x) {
  constexpr float shift = 0x1.8p23f;                    // adding it rounds to an integer, in the lowest bits
  const float shifted = fma(x, 0x1.715476p+0f, shift);  // log2(e)
  const float count = shifted - shift;
  // ln 2 in two parts.
  const float rest = fma(count, -0x1.7f7d1cp-20f, fma(count, -0x1.62e400p-1f, x));
  return {std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(shift), rest};
}

// 2^count for count in [-126, 127].
ASSAY_HOST_DEVICE inline float power_of_two(std::uint32_t count) { return std::bit_cast<float>((count + 127u) << 23); }

// e^r - 1 for |r| <= ln 2 / 2.
ASSAY_HOST_DEVICE inline float exp_less_one(float r) {
  float p = 0x1.6d66dcp-10f;
  p = fma(p, r, 0x1.122cb4p-7f);
  p = fma(p, r, 0x1.5554d4p-5f);
  p = fma(p, r, 0x1.5554aap-3f);
  p = fma(p, r, 0.5f);
  return fma(p * r, r, r);
}

}  // namespace detail

// Within 1.1 ulp; denormal results and infinity included.
ASSAY_HOST_DEVICE inline float exp(float x) {
  float inside = x < -104.0f ? -104.0f : x;  // NaN stays
  inside = inside > 89.0f ? 89.0f : inside;
  const detail::Reduced reduced = detail::reduce(inside);
  const float mantissa = 1.0f + detail::exp_less_one(reduced.rest);
  // Two factors, since neither 2^128 nor 2^-150 is a float.
  const std::uint32_t half = static_cast<std::uint32_t>(static_cast<std::int32_t>(reduced.count) >> 1);
  return mantissa * detail::power_of_two(half) * detail::power_of_two(reduced.count - half);
}
ASSAY_HOST_DEVICE inline double exp(double x) { return std::exp(x); }

// Within 3 ulp: (e^2a - 1) / (e^2a + 1), a = |x|, the numerator without cancellation.
ASSAY_HOST_DEVICE inline float tanh(float x) {
  const float size = std::fabs(x);
  const float inside = size > 9.5f ? 9.5f : size;  // beyond, tanh rounds to 1
  const detail::Reduced reduced = detail::reduce(2.0f * inside);
  const float power = detail::power_of_two(reduced.count);
  const float less_one = fma(power, detail::exp_less_one(reduced.rest), power - 1.0f);
  return std::copysign(less_one / (less_one + 2.0f), x);
}
ASSAY_HOST_DEVICE inline double tanh(double x) { return std::tanh(x); }

// e^x for x <= 0 if that is a normal number, otherwise 0 (below x = -87.7). Half the work of exp(). A GPU computes it
// in hardware, within 2 + 1.2 |x| ulp: large errors only affect small terms.
ASSAY_HOST_DEVICE inline float exp_of_negative(float x) {
#ifdef __CUDA_ARCH__
  return hardware::exp(x);
#else
  const detail::Reduced reduced = detail::reduce(x < -88.0f ? -88.0f : x);  // NaN stays
  // -88 gives power_of_two(-127), which is zero.
  return (1.0f + detail::exp_less_one(reduced.rest)) * detail::power_of_two(reduced.count);
#endif
}
ASSAY_HOST_DEVICE inline double exp_of_negative(double x) { return std::exp(x); }

// 1 / x for x in [1, 2^126]: within 1 ulp on a GPU, whose exact division is a subroutine.
ASSAY_HOST_DEVICE inline float inverse(float x) {
#ifdef __CUDA_ARCH__
  return __fdividef(1.0f, x);
#else
  return 1.0f / x;
#endif
}
ASSAY_HOST_DEVICE inline double inverse(double x) { return 1.0 / x; }

// The normal distribution: its density at x, and the probability of less than x.
template <typename T>
struct Normal {
  T density;
  T below;
};
// The smaller tail is density * polynomial of 1 / (1 + 0.3 |x|), to a relative 3e-7 for |x| < 3: no cancellation.
ASSAY_HOST_DEVICE inline Normal<float> normal(float x) {
  const float size = std::fabs(x);
  const float bell = exp_of_negative(-0.5f * size * size);
  const float t = inverse(fma(0.3f, size, 1.0f));
  float p = 0.03567454060587636f;
  p = fma(p, t, -0.1572020493751635f);
  p = fma(p, t, 0.2063516317054648f);
  p = fma(p, t, -0.05368184134773468f);
  p = fma(p, t, 0.12856063670870482f);
  p = fma(p, t, 0.09991380154311184f);
  p = fma(p, t, 0.12075390516739187f);
  p = fma(p, t, 0.11962930221615925f);
  p *= t;
  return {0.39894228040143267794f * bell, x < 0.0f ? p * bell : fma(-p, bell, 1.0f)};
}
ASSAY_HOST_DEVICE inline Normal<double> normal(double x) {
  return {0.39894228040143267794 * std::exp(-0.5 * x * x), 0.5 * std::erfc(-0.70710678118654752440 * x)};
}

template <typename T>
struct Sigmoid {
  T value;
  T slope;  // value (1 - value), without cancellation
};

template <typename T>
ASSAY_HOST_DEVICE inline Sigmoid<T> sigmoid_and_slope(T x) {
  const T small = exp_of_negative(-std::fabs(x));
  const T large = inverse(T(1) + small);
  return {x < T(0) ? small * large : large, small * large * large};
}

template <typename T>
ASSAY_HOST_DEVICE inline T sigmoid(T x) {
  return sigmoid_and_slope(x).value;
}

}  // namespace assay::ops::functors
