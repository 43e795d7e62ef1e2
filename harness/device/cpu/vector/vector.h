// Vectors of the instruction set that a kernel is compiled for. Only sources listed in assay_kernels() include this:
// everything here is local to the including object.
//
// Float, Bits and Int are GCC's vector types: + - * / < ?: work per lane, a scalar applies to all lanes, and a * b + c
// becomes one FMA if there is one. bf16 is loaded as f32 and rounded to nearest even when stored.
#pragma once

#include "harness/core/dtype.h"

#include <cstdint>
#include <type_traits>
#include <utility>

#include ASSAY_ISA_HEADER  // lanes, Float, Bits, Halves, square_root(), widen(), to_bf16(), stream(), fence(), add_pairs()

namespace assay::vector {
namespace {

using Int = std::int32_t __attribute__((vector_size(sizeof(Float))));
using Double = double __attribute__((vector_size(sizeof(Float))));        // half as many lanes
using HalfFloat = float __attribute__((vector_size(sizeof(Float) / 2)));  // as many lanes as Double
using HalfBits = std::uint32_t __attribute__((vector_size(sizeof(Float) / 2)));
using QuarterHalves = std::uint16_t __attribute__((vector_size(sizeof(Float) / 4)));

// How many lanes a load or store touches: all (a compile-time constant), or the first n.
struct Full {};

// x - 0, which the compiler folds away (0 + x it keeps, because of -0): one broadcast from memory.
inline Float splat(float x) { return x - Float{}; }
inline Float as_float(Bits x) { return reinterpret_cast<Float>(x); }
inline Bits as_bits(Float x) { return reinterpret_cast<Bits>(x); }

inline Float from_bf16(Halves x) { return as_float(widen(x) << 16); }

inline Float load(const float* p, Full = {}) {
  Float x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
inline Float load(const bf16* p, Full = {}) {
  Halves x;
  __builtin_memcpy(&x, p, sizeof x);
  return from_bf16(x);
}
inline void store(float* p, Float x, Full = {}) { __builtin_memcpy(p, &x, sizeof x); }
inline void store(bf16* p, Float x, Full = {}) {
  const Halves h = to_bf16(x);
  __builtin_memcpy(static_cast<void*>(p), &h, sizeof h);
}

inline void stream(bf16* p, Float x) { stream(&p->bits, to_bf16(x)); }

// The first n lanes, 0 < n < lanes; the others are zero.
template <typename T>
inline Float load(const T* p, int n) {
  unsigned char part[lanes * sizeof(T)] = {};
  __builtin_memcpy(part, p, static_cast<std::size_t>(n) * sizeof(T));
  return load(reinterpret_cast<const T*>(part));
}
template <typename T>
inline void store(T* p, Float x, int n) {
  unsigned char part[lanes * sizeof(T)];
  store(reinterpret_cast<T*>(part), x);
  __builtin_memcpy(static_cast<void*>(p), part, static_cast<std::size_t>(n) * sizeof(T));
}
// x with the lanes from n on zeroed.
inline Float keep(Float x, Full) { return x; }
inline Float keep(Float x, int n) {
  Int index;
  for (int i = 0; i < lanes; ++i) index[i] = i;
  return index < n ? x : Float{};
}

// Loads lanes / 2 numbers as f64.
inline Double load_double(const float* p) {
  HalfFloat x;
  __builtin_memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Double);
}
inline Double load_double(const bf16* p) {
  QuarterHalves x;
  __builtin_memcpy(&x, p, sizeof x);
  return __builtin_convertvector(reinterpret_cast<HalfFloat>(__builtin_convertvector(x, HalfBits) << 16), Double);
}

// Adds lanes pairwise, so that every object with this many lanes adds in the same order.
inline float sum(Float x) {
  float part[lanes];
  store(part, x);
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) part[i] += part[i + half];
  return part[0];
}
inline double sum(Double x) {
  double total = 0;
  for (int i = 0; i < lanes / 2; ++i) total += x[i];
  return total;
}
// NaN in b stays; NaN in a gives b.
inline Float maximum(Float a, Float b) { return a > b ? a : b; }
inline Float minimum(Float a, Float b) { return a < b ? a : b; }
inline float largest(Float x) {
  float max = x[0];
  for (int i = 1; i < lanes; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

// Calls visit(number) for 0 .. count - 1, each a constant with its own type (number.value), so that arrays indexed by
// it stay in registers.
template <int count, typename Visit>
[[gnu::always_inline]] inline void repeat(const Visit& visit) {
  [&]<int... number>(std::integer_sequence<int, number...>) [[gnu::always_inline]] {
    (visit(std::integral_constant<int, number>{}), ...);
  }
  (std::make_integer_sequence<int, count>{});
}

// Calls visit(i, Full) for whole vectors of [begin, end) and visit(i, n) for the rest, `unroll` vectors at a time. A
// visitor with a third parameter gets the index within those (number.value), to keep separate sums.
template <int unroll = 1, typename Visit>
[[gnu::always_inline]] inline void for_vectors(std::int64_t begin, std::int64_t end, const Visit& visit) {
  const auto call = [&](std::int64_t i, auto count, auto number) [[gnu::always_inline]] {
    if constexpr (requires { visit(i, count, number); })
      visit(i, count, number);
    else
      visit(i, count);
  };
  std::int64_t i = begin;
  if constexpr (unroll > 1)
    for (; i + unroll * lanes <= end; i += unroll * lanes)
      repeat<unroll>([&](auto u) [[gnu::always_inline]] { call(i + u.value * lanes, Full{}, u); });
  constexpr std::integral_constant<int, 0> first;
  for (; i + lanes <= end; i += lanes) call(i, Full{}, first);
  if (i < end) call(i, static_cast<int>(end - i), first);
}

}  // namespace
}  // namespace assay::vector
