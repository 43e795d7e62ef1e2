// Vectors of elements in a thread's registers: read and written 16 bytes at a time, converted to and from what kernels
// compute in.
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

// What kernels compute in.
template <typename T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

__host__ __device__ inline double widen(double x) { return x; }
__host__ __device__ inline float widen(float x) { return x; }
__host__ __device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
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

// N elements, a power of two of bytes.
template <typename T, int N>
struct Vector {
  T lane[N];
};

// As many elements as 16 bytes hold.
template <typename T>
constexpr int lanes = 16 / static_cast<int>(sizeof(T));

// Whether the caches should keep what is read or written. Streaming: no, it is not used again soon.
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
  using type = unsigned int;
};
template <>
struct WordOf<2> {
  using type = unsigned short;
};
template <>
struct WordOf<1> {
  using type = unsigned char;
};

template <typename T, int N>
using Word = typename WordOf<(sizeof(T) * N < 16 ? sizeof(T) * N : 16)>::type;

template <Keep keep, typename W>
__device__ __forceinline__ W load_word(const W* at) {
  if constexpr (keep == Keep::no)
    return __ldcs(at);
  else
    return *at;
}

// By the intrinsic either way: left to itself, the compiler takes a vector apart again that it saw put together.
template <Keep keep, typename W>
__device__ __forceinline__ void store_word(W* at, W word) {
  if constexpr (keep == Keep::no)
    __stcs(at, word);
  else
    __stwb(at, word);
}

}  // namespace detail

// N elements at `at` (in global memory, or with Keep::yes in any), which is aligned to their size or to 16 bytes,
// whichever is less.
template <int N, Keep keep = Keep::yes, typename T>
__device__ __forceinline__ Vector<T, N> load(const T* at) {
  using Word = detail::Word<T, N>;
  constexpr int count = static_cast<int>(sizeof(T) * N / sizeof(Word));
  Word words[count];
#pragma unroll
  for (int i = 0; i < count; ++i) words[i] = detail::load_word<keep>(reinterpret_cast<const Word*>(at) + i);
  Vector<T, N> vector;
  memcpy(static_cast<void*>(&vector), words, sizeof(vector));
  return vector;
}

// In global memory.
template <Keep keep = Keep::yes, typename T, int N>
__device__ __forceinline__ void store(T* at, const Vector<T, N>& vector) {
  using Word = detail::Word<T, N>;
  constexpr int count = static_cast<int>(sizeof(T) * N / sizeof(Word));
  Word words[count];
  memcpy(words, &vector, sizeof(vector));
#pragma unroll
  for (int i = 0; i < count; ++i) detail::store_word<keep>(reinterpret_cast<Word*>(at) + i, words[i]);
}

template <typename T, int N>
__device__ __forceinline__ Vector<Compute<T>, N> widened(const Vector<T, N>& from) {
  Vector<Compute<T>, N> to;
#pragma unroll
  for (int i = 0; i < N; ++i) to.lane[i] = widen(from.lane[i]);
  return to;
}

// Two at a time where the hardware converts so.
template <typename T, int N>
__device__ __forceinline__ Vector<T, N> narrowed(const Vector<Compute<T>, N>& from) {
  Vector<T, N> to;
  if constexpr (sizeof(T) < 4 && N % 2 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const float low = from.lane[i], high = from.lane[i + 1];
      if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        memcpy(static_cast<void*>(to.lane + i), &pair, sizeof(pair));
      } else if constexpr (std::is_same_v<T, __half>) {
        const __half2 pair = __floats2half2_rn(low, high);
        memcpy(static_cast<void*>(to.lane + i), &pair, sizeof(pair));
      } else {
        constexpr auto kind = std::is_same_v<T, __nv_fp8_e4m3> ? __NV_E4M3 : __NV_E5M2;
        const __nv_fp8x2_storage_t pair = __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, kind);
        memcpy(static_cast<void*>(to.lane + i), &pair, sizeof(pair));
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to.lane[i] = narrow<T>(from.lane[i]);
  }
  return to;
}

// What is stored at `at`, widened; and the other way.
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

// i / divisor and the remainder, by 32-bit arithmetic where i fits (the 64-bit kind costs as much as a short kernel).
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
