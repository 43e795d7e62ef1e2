// What the loops of maps.cu and sums.cu share: vectors of two doubles, loads and stores by kind, the walk over tiles.
#pragma once

#include "harness/device/cuda/launch.h"
#include "suites/memory/cuda/variants.h"
#include "suites/memory/device_kernels.h"

#include <cuda_runtime.h>

#include <cstddef>

namespace assay::memory {

constexpr int most_threads = 1024;

template <Variant::Access access>
__device__ __forceinline__ double2 load(const double2* at) {
  if constexpr (access == Variant::Access::streaming)
    return __ldcs(at);
  else if constexpr (access == Variant::Access::second)
    return __ldcg(at);
  else
    return *at;
}
template <Variant::Access access>
__device__ __forceinline__ void store(double2* at, double2 value) {
  if constexpr (access == Variant::Access::streaming)
    __stcs(at, value);
  else
    *at = value;
}

// Calls body(first, whole) for each tile of blockDim.x * unroll vectors that is this block's; `first` is the thread's
// first vector, the others follow at distances of blockDim.x; not whole: some lie beyond the end. In each pass the
// tiles move on by one third of them, so that another block reads what this one has.
template <int unroll, typename Body>
__device__ __forceinline__ void walk(std::size_t vectors, unsigned long long passes, const Body& body) {
  const std::size_t tile = static_cast<std::size_t>(blockDim.x) * unroll;
  const std::size_t tiles = (vectors + tile - 1) / tile;
  const std::size_t step = tiles / 3 + 1;
  std::size_t shift = 0;
  for (unsigned long long pass = 0; pass < passes; ++pass) {
    for (std::size_t t = blockIdx.x; t < tiles; t += gridDim.x) {
      const std::size_t place = t + shift < tiles ? t + shift : t + shift - tiles;
      body(place * tile + threadIdx.x, (place + 1) * tile <= vectors);
    }
    shift = shift + step < tiles ? shift + step : (shift + step) % tiles;
  }
}

// Ops with an output, and those with a sum.
void run_map(Op op, const Variant& variant, const Arrays& arrays, std::uint64_t passes, cudaStream_t stream);
void run_sum(Op op, const Variant& variant, const Arrays& arrays, std::uint64_t passes, cudaStream_t stream);

inline constexpr std::size_t most_partial_sums = 1 << 14;

}  // namespace assay::memory
