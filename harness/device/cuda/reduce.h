// Sums and maxima over a warp or a block by shuffles, in a fixed order: every thread gets the same bits, every time.
// Blocks are one-dimensional, of whole warps.
#pragma once

#include "harness/device/cuda/launch.h"

namespace assay::cuda {

constexpr int warp_threads = 32;
constexpr unsigned whole_warp = 0xffffffffu;

// Two values that are summed together.
template <typename T>
struct Two {
  T a;
  T b;
};

// A value and its index.
struct Ranked {
  float value;
  int index;
};

// Ways to combine two values; each is commutative.
struct Sum {
  template <typename T>
  __device__ T operator()(T x, T y) const {
    return x + y;
  }
  template <typename T>
  __device__ Two<T> operator()(Two<T> x, Two<T> y) const {
    return {x.a + y.a, x.b + y.b};
  }
};
struct Largest {
  __device__ float operator()(float x, float y) const { return fmaxf(x, y); }  // ignores NaN
  __device__ int operator()(int x, int y) const { return x > y ? x : y; }
  // The first of the largest; undefined for NaN.
  __device__ Ranked operator()(Ranked x, Ranked y) const {
    const bool second = y.value > x.value || (y.value == x.value && y.index < x.index);
    return second ? y : x;
  }
};

template <typename T>
__device__ __forceinline__ T exchanged(T value, int mask) {
  return __shfl_xor_sync(whole_warp, value, mask);
}
template <typename T>
__device__ __forceinline__ Two<T> exchanged(Two<T> value, int mask) {
  return {exchanged(value.a, mask), exchanged(value.b, mask)};
}
__device__ __forceinline__ Ranked exchanged(Ranked value, int mask) {
  return {exchanged(value.value, mask), exchanged(value.index, mask)};
}

// Over groups of `threads` neighbours, a power of two up to a warp; all threads of the warp take part.
template <int threads = warp_threads, typename T, typename Join>
__device__ __forceinline__ T warp_reduce(T value, Join join) {
#pragma unroll
  for (int mask = threads / 2; mask > 0; mask /= 2) value = join(value, exchanged(value, mask));
  return value;
}
template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
  return warp_reduce(value, Sum());
}

// Over the block. `scratch` is shared memory, one T for each of up to 32 warps; reusable when the call returns.
template <typename T, typename Join>
__device__ __forceinline__ T block_reduce(T value, Join join, T neutral, T* scratch) {
  const int warps = static_cast<int>(blockDim.x) / warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads, lane = static_cast<int>(threadIdx.x) % warp_threads;
  value = warp_reduce(value, join);
  if (warps == 1) return value;
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  value = warp_reduce(lane < warps ? scratch[lane] : neutral, join);
  __syncthreads();
  return value;
}
template <typename T>
__device__ __forceinline__ T block_sum(T value, T* scratch) {
  return block_reduce(value, Sum(), T{}, scratch);
}

}  // namespace assay::cuda
