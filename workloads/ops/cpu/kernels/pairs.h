// Pairs of bf16 in 32-bit units, the operands of instructions that multiply pairs.
#pragma once

#include "harness/device/cpu/vector/vector.h"

namespace assay::vector {
namespace {

// Rounds two vectors to bf16 (nearest even), into the lower and upper halves of the units.
inline Bits paired(Float lower, Float upper) {
  const Bits l = as_bits(lower), u = as_bits(upper);
  const Bits low = (l + 0x7fffu + ((l >> 16) & 1u)) >> 16;
  const Bits high = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
  return low | high;
}

}  // namespace
}  // namespace assay::vector
