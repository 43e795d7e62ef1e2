// Operations that GCC's vector extensions express badly, for processors without their own file: four lanes, plain
// loops.
#pragma once

#include <cstdint>

namespace assay::vector {
namespace {

constexpr int lanes = 4;
using Float = float __attribute__((vector_size(lanes * 4)));
using Bits = std::uint32_t __attribute__((vector_size(lanes * 4)));
using Halves = std::uint16_t __attribute__((vector_size(lanes * 2)));

inline Float square_root(Float x) {
  Float y;
  for (int i = 0; i < lanes; ++i) y[i] = __builtin_sqrtf(x[i]);
  return y;
}

// 16 bits per lane, in the lower half of each.
inline Bits widen(Halves x) { return __builtin_convertvector(x, Bits); }
inline Halves narrow(Bits x) { return __builtin_convertvector(x, Halves); }

// Non-temporal stores elsewhere; plain ones here.
inline void stream(float* p, Float x) { __builtin_memcpy(p, &x, sizeof x); }
inline void stream(std::uint16_t* p, Halves x) { __builtin_memcpy(p, &x, sizeof x); }
inline void fence() {}

}  // namespace
}  // namespace assay::vector

#include "harness/device/cpu/vector/round_bf16.h"
