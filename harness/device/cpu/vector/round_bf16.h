// bf16 by integer arithmetic, without a conversion instruction; for the native_*.h that define narrow().
#pragma once

namespace assay::vector {
namespace {

// To nearest even, NaN stays NaN.
inline Halves to_bf16(Float x) {
  const Bits u = reinterpret_cast<Bits>(x);
  const Bits rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return narrow(x == x ? rounded : Bits{} + 0x7fc0u);
}

// sum + a * b over the pairs of bf16 in each lane, the first of a pair in the lower half.
inline Float add_pairs(Float sum, Bits a, Bits b) {
  sum = reinterpret_cast<Float>(a << 16) * reinterpret_cast<Float>(b << 16) + sum;
  return reinterpret_cast<Float>(a & 0xffff0000u) * reinterpret_cast<Float>(b & 0xffff0000u) + sum;
}

}  // namespace
}  // namespace assay::vector
