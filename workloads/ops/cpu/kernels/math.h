// The exponential and functions built on it, by lane. Polynomials are minimax fits; errors are relative, measured
// against 40-digit arithmetic.
#pragma once

#include "harness/device/cpu/vector/vector.h"

namespace assay::vector {
namespace {

// e^x within 1.5e-7; 0 below -87.3, where e^x is no longer a normal f32, and 2.4e38 above 88.3.
inline Float exponential(Float x) {
  const Float clamped = minimum(splat(88.3f), maximum(splat(-87.3f), x));
  // Adding 1.5 * 2^23 rounds to an integer, in the lower bits.
  const Float shifted = clamped * 1.44269504f + 12582912.0f;
  const Float n = shifted - 12582912.0f;
  const Float r = clamped - n * 0.693359375f + n * 2.12194440e-4f;  // ln 2 in two parts
  Float p = r * 1.3814594130963087e-3f + 8.36871936917305e-3f;
  p = p * r + 4.166838899254799e-2f;
  p = p * r + 1.666652113199234e-1f;
  p = p * r + 4.999999403953552e-1f;
  p = p * r * r + r + 1.0f;
  const Float scaled = p * as_float((as_bits(shifted) << 23) + 0x3f800000u);  // NaN stays NaN
  return x < -87.3f ? Float{} : scaled;
}

inline Float sigmoid(Float x) { return 1.0f / (1.0f + exponential(-x)); }

// Normal distribution: density, and probability of less than x, to 4e-7 of the smaller tail for |x| < 5.
struct Normal {
  Float density;
  Float below;
};
inline Normal normal(Float x) {
  const Float a = x < 0.0f ? -x : x;
  const Float bell = exponential(a * a * -0.5f);
  const Float t = 1.0f / (1.0f + 0.3f * a);
  Float p = t * 0.03567454060587636f - 0.1572020493751635f;
  p = p * t + 0.2063516317054648f;
  p = p * t - 0.05368184134773468f;
  p = p * t + 0.12856063670870482f;
  p = p * t + 0.09991380154311184f;
  p = p * t + 0.12075390516739187f;
  p = p * t + 0.11962930221615925f;
  const Float tail = p * t * bell;
  return {bell * 0.3989422804f, x < 0.0f ? tail : 1.0f - tail};
}

}  // namespace
}  // namespace assay::vector
