// Vectors of elements in a thread's registers: loaded and stored 16 bytes at a time, converted to and from the type
// that kernels compute in.
#pragma once

#include "harness/device/cuda/launch.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace assay::cuda {

// The type that kernels compute in.
template <typename T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

__host__ __device__ inline double widen(double x) { return x; }
__host__ __device__ inline float widen(float x) { return x; }
// Uses bit operations, which the compiler optimises (unlike the library's conversion): widening half a word takes one
// shift or mask.
__host__ __device__ inline float widen(__nv_bfloat16 x) {
  std::uint16_t bits = 0;
  memcpy(&bits, &x, sizeof(bits));
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float wide = 0;
  memcpy(&wide, &word, sizeof(wide));
  return wide;
}
__host__ __device__ inline float widen(__half x) { return __half2float(x); }
__host__ __device__ inline float widen(__nv_fp8_e4m3 x) { return static_cast<float>(x); }
__host__ __device__ inline float widen(__nv_fp8_e5m2 x) { return static_cast<float>(x); }

// To nearest even; the 8-bit types saturate.
template <typename T>
__host__ __device__ T narrow(Compute<T> x) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(x);
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(x);
  else
    return T(x);
}

// N elements in the compute type.
template <typename T, int N>
struct Vector {
  T lane[N];
};

// Elements in 16 bytes.
template <typename T>
constexpr int lanes = 16 / static_cast<int>(sizeof(T));

// Whether caches should keep what is read or written; no means streaming: it is not used again soon.
enum class Keep { yes, no };

namespace detail {

template <int bytes>
struct WordOf;
template <>
struct WordOf<16> {
  using type = uint4;
};
template <>
struct WordOf<8> {
  using type = uint2;
};
template <>
struct WordOf<4> {
  using type = std::uint32_t;
};
template <>
struct WordOf<2> {
  using type = std::uint16_t;
};
template <>
struct WordOf<1> {
  using type = std::uint8_t;
};

// The word to read or write `bytes` by: up to 16 at once.
template <int bytes>
using Word = typename WordOf<(bytes < 16 ? bytes : 16)>::type;

template <Keep keep, typename W>
__device__ __forceinline__ W load_word(const W* at) {
  if constexpr (keep == Keep::no) return __ldcs(at);
#ifdef ASSAY_CUDA_EMULATED
  emulation::check_alignment(at, sizeof(W));
#endif
  return *at;
}

// Uses an intrinsic in both cases: otherwise the compiler splits a vector again if it saw how it was assembled.
template <Keep keep, typename W>
__device__ __forceinline__ void store_word(W* at, W word) {
  if constexpr (keep == Keep::no)
    __stcs(at, word);
  else
    __stwb(at, word);
}

}  // namespace detail

// N elements (a power of two in bytes) as in memory: in whole registers, split only where an element is used. Split at
// the load, a conditional load would have to finish before the next one could start.
template <typename T, int N>
struct Packed {
  static constexpr int bytes = static_cast<int>(sizeof(T)) * N;
  using Part = typename detail::WordOf<(bytes < 4 ? bytes : 4)>::type;
  static constexpr int in_part = static_cast<int>(sizeof(Part) / sizeof(T));  // 0: an element spans several parts

  Part part[bytes / sizeof(Part)];

  __device__ __forceinline__ T operator[](int i) const {
    T element;
    if constexpr (in_part > 1) {
      const std::uint32_t shifted = part[i / in_part] >> (8 * static_cast<int>(sizeof(T)) * (i % in_part));
      const auto bits = static_cast<typename detail::WordOf<static_cast<int>(sizeof(T))>::type>(shifted);
      memcpy(static_cast<void*>(&element), &bits, sizeof(T));
    } else {
      constexpr int parts = static_cast<int>(sizeof(T) / sizeof(Part));
      memcpy(static_cast<void*>(&element), part + i * parts, sizeof(T));
    }
    return element;
  }
};

// N elements at `at`, in global memory (or any memory with Keep::yes), aligned to their size or to 16 bytes, whichever
// is less.
template <int N, Keep keep = Keep::yes, typename T>
__device__ __forceinline__ Packed<T, N> load(const T* at) {
  using Word = detail::Word<Packed<T, N>::bytes>;
  constexpr int count = static_cast<int>(Packed<T, N>::bytes / sizeof(Word));
  Word words[count];
#pragma unroll
  for (int i = 0; i < count; ++i) words[i] = detail::load_word<keep>(reinterpret_cast<const Word*>(at) + i);
  Packed<T, N> packed;
  memcpy(packed.part, words, sizeof(words));
  return packed;
}

// To global memory.
template <Keep keep = Keep::yes, typename T, int N>
__device__ __forceinline__ void store(T* at, const Packed<T, N>& packed) {
  using Word = detail::Word<Packed<T, N>::bytes>;
  constexpr int count = static_cast<int>(Packed<T, N>::bytes / sizeof(Word));
  Word words[count];
  memcpy(words, packed.part, sizeof(words));
#pragma unroll
  for (int i = 0; i < count; ++i) detail::store_word<keep>(reinterpret_cast<Word*>(at) + i, words[i]);
}

template <typename T, int N>
__device__ __forceinline__ Vector<Compute<T>, N> widened(const Packed<T, N>& from) {
  Vector<Compute<T>, N> to;
#pragma unroll
  for (int i = 0; i < N; ++i) to.lane[i] = widen(from[i]);
  return to;
}

// The inverse, for element types of any size.
template <typename T, int N>
__device__ __forceinline__ Packed<T, N> packed(const Vector<T, N>& from) {
  Packed<T, N> to;
  memcpy(to.part, static_cast<const void*>(from.lane), sizeof(to.part));
  return to;
}

namespace detail {

// The bits of two elements, the first one lowest.
template <typename T>
__device__ __forceinline__ std::uint32_t bits_of_two(float first, float second) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    std::uint32_t bits = 0;
    memcpy(&bits, static_cast<const void*>(&pair), sizeof(bits));
    return bits;
  } else if constexpr (std::is_same_v<T, __half>) {
    const __half2 pair = __floats2half2_rn(first, second);
    std::uint32_t bits = 0;
    memcpy(&bits, static_cast<const void*>(&pair), sizeof(bits));
    return bits;
  } else {
    constexpr auto kind = std::is_same_v<T, __nv_fp8_e4m3> ? __NV_E4M3 : __NV_E5M2;
    return __nv_cvt_float2_to_fp8x2(make_float2(first, second), __NV_SATFINITE, kind);
  }
}

}  // namespace detail

// Two at a time if the hardware converts pairs.
template <typename T, int N>
__device__ __forceinline__ Packed<T, N> narrowed(const Vector<Compute<T>, N>& from) {
  Packed<T, N> to;
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) to.part[i] = detail::bits_of_two<T>(from.lane[2 * i], from.lane[2 * i + 1]);
  } else if constexpr (sizeof(T) == 1 && N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N / 4; ++i)
      to.part[i] = detail::bits_of_two<T>(from.lane[4 * i], from.lane[4 * i + 1]) |
                   detail::bits_of_two<T>(from.lane[4 * i + 2], from.lane[4 * i + 3]) << 16;
  } else {
    Vector<T, N> each;
#pragma unroll
    for (int i = 0; i < N; ++i) each.lane[i] = narrow<T>(from.lane[i]);
    to = packed(each);
  }
  return to;
}

// load() and widened(); narrowed() and store().
template <int N, Keep keep = Keep::yes, typename T>
__device__ __forceinline__ Vector<Compute<T>, N> load_wide(const T* at) {
  return widened(load<N, keep>(at));
}
template <Keep keep = Keep::yes, typename T, int N>
__device__ __forceinline__ void store_narrow(T* at, const Vector<Compute<T>, N>& vector) {
  store<keep>(at, narrowed<T>(vector));
}

// Whether every pointer (null included) is aligned to 16 bytes.
template <typename... Pointers>
bool aligned(const Pointers*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

// i / divisor and the remainder, in 32-bit arithmetic if possible (64-bit division costs as much as a short kernel).
struct Quotient {
  std::int64_t whole;
  std::int64_t rest;
};
__device__ __forceinline__ Quotient divide(std::int64_t i, std::int64_t divisor) {
  if (((i | divisor) >> 32) == 0) {
    const auto a = static_cast<std::uint32_t>(i), b = static_cast<std::uint32_t>(divisor);
    const std::uint32_t whole = a / b;
    return {whole, a - whole * b};
  }
  const std::int64_t whole = i / divisor;
  return {whole, i - whole * divisor};
}

}  // namespace assay::cuda
