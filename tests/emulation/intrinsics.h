// The device functions of CUDA that kernels call, as plain host functions: arithmetic, bits, caching hints, atomics.
#pragma once

#include "tests/emulation/block.h"

#include <math.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Fast arithmetic. The real functions have errors of a few ulp; these have smaller ones.
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline void __sincosf(float x, float* sine, float* cosine) { *sine = sinf(x), *cosine = cosf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }

// Conversions and bits.
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(rintf(x)); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __ffsll(long long x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1; }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(x) * y) >> 32);
}
__extension__ inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(x) * y) >> 64);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<std::uint64_t>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned select = selector >> (4 * i) & 15;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (select & 7))) & 0xff;
    if (select & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// nvcc knows these without a namespace.
#define ASSAY_EMULATION_MIN_MAX(T)                 \
  inline T min(T x, T y) { return y < x ? y : x; } \
  inline T max(T x, T y) { return x < y ? y : x; }
ASSAY_EMULATION_MIN_MAX(int)
ASSAY_EMULATION_MIN_MAX(unsigned)
ASSAY_EMULATION_MIN_MAX(long)
ASSAY_EMULATION_MIN_MAX(unsigned long)
ASSAY_EMULATION_MIN_MAX(long long)
ASSAY_EMULATION_MIN_MAX(unsigned long long)
#undef ASSAY_EMULATION_MIN_MAX
inline float min(float x, float y) { return fminf(x, y); }
inline float max(float x, float y) { return fmaxf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
inline double max(double x, double y) { return fmax(x, y); }

// Caching hints.
#define ASSAY_EMULATION_LOAD(name)                         \
  template <typename T>                                    \
  inline T name(const T* address) {                        \
    assay::emulation::check_alignment(address, sizeof(T)); \
    return *address;                                       \
  }
ASSAY_EMULATION_LOAD(__ldg)
ASSAY_EMULATION_LOAD(__ldca)
ASSAY_EMULATION_LOAD(__ldcg)
ASSAY_EMULATION_LOAD(__ldcs)
ASSAY_EMULATION_LOAD(__ldlu)
ASSAY_EMULATION_LOAD(__ldcv)
#undef ASSAY_EMULATION_LOAD
#define ASSAY_EMULATION_STORE(name)                             \
  template <typename T>                                         \
  inline void name(T* address, std::type_identity_t<T> value) { \
    assay::emulation::check_alignment(address, sizeof(T));      \
    *address = value;                                           \
  }
ASSAY_EMULATION_STORE(__stwb)
ASSAY_EMULATION_STORE(__stcg)
ASSAY_EMULATION_STORE(__stcs)
ASSAY_EMULATION_STORE(__stwt)
#undef ASSAY_EMULATION_STORE

// Order and time.
inline void __threadfence_block() {}
inline void __threadfence() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() { assay::emulation::trap(); }
inline long long clock64() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}
inline unsigned long long __globaltimer() { return static_cast<unsigned long long>(clock64()); }

// Atomics: threads of the emulation take turns, so each is the plain operation.
#define ASSAY_EMULATION_ATOMIC(name, expression)                      \
  template <typename T>                                               \
  inline T name(T* address, std::type_identity_t<T> value) {          \
    const T old = *address;                                           \
    *address = static_cast<T>(expression);                            \
    return old;                                                       \
  }                                                                   \
  template <typename T>                                               \
  inline T name##_block(T* address, std::type_identity_t<T> value) {  \
    return name(address, value);                                      \
  }                                                                   \
  template <typename T>                                               \
  inline T name##_system(T* address, std::type_identity_t<T> value) { \
    return name(address, value);                                      \
  }
ASSAY_EMULATION_ATOMIC(atomicAdd, old + value)
ASSAY_EMULATION_ATOMIC(atomicSub, old - value)
ASSAY_EMULATION_ATOMIC(atomicExch, value)
ASSAY_EMULATION_ATOMIC(atomicMin, value < old ? value : old)
ASSAY_EMULATION_ATOMIC(atomicMax, old < value ? value : old)
ASSAY_EMULATION_ATOMIC(atomicAnd, old& value)
ASSAY_EMULATION_ATOMIC(atomicOr, old | value)
ASSAY_EMULATION_ATOMIC(atomicXor, old ^ value)
ASSAY_EMULATION_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
ASSAY_EMULATION_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef ASSAY_EMULATION_ATOMIC
template <typename T>
inline T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}
