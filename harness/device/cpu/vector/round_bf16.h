// bf16 by integer arithmetic, where no instruction converts; for the native_*.h that define narrow().
#pragma once

namespace assay::vector {
namespace {

// By integers: to nearest even, NaN stays NaN.
inline Halves to_bf16(Float x) {
  const Bits u = reinterpret_cast<Bits>(x);
  const Bits rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return narrow(x == x ? rounded : Bits{} + 0x7fc0u);
}

}  // namespace
}  // namespace assay::vector
