// Shared by maps.cu and sums.cu: vectors of two doubles, loads and stores by kind, the iteration over tiles.
#pragma once

#include "harness/device/cuda/launch.h"
#include "suites/memory/cuda/variants.h"
#include "suites/memory/device_kernels.h"

#include <cuda_runtime.h>

#include <cstddef>

namespace assay::memory {

constexpr int max_threads = 1024;

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

// Calls body(first, whole) for each of this block's tiles of blockDim.x * unroll vectors; `first` is the thread's first
// vector, the others follow at distances of blockDim.x; not whole: some are beyond the end. Passes follow without
// synchronisation: blocks share the tiles of all passes, so that few tiles also keep every SM busy. There is no
// division before the first load: a block of one tile lives no longer than its loads.
template <int unroll, typename Body>
__device__ __forceinline__ void walk(std::size_t vectors, const Walk& way, const Body& body) {
  const std::size_t tile = static_cast<std::size_t>(blockDim.x) * unroll;
  std::size_t place = blockIdx.x;
  if (place >= way.tiles) place = static_cast<unsigned>(place) % static_cast<unsigned>(way.tiles);
  for (std::size_t turn = blockIdx.x; turn < way.turns; turn += gridDim.x) {
    body(place * tile + threadIdx.x, (place + 1) * tile <= vectors);
    place += way.step;
    if (place >= way.tiles) place -= way.tiles;
  }
}

// Ops with an output array, and ops with a sum.
void run_map(Op op, const Variant& variant, const Arrays& arrays, std::uint64_t passes, cudaStream_t stream);
void run_sum(Op op, const Variant& variant, const Arrays& arrays, std::uint64_t passes, cudaStream_t stream);

inline constexpr std::size_t max_partial_sums = 1 << 14;

}  // namespace assay::memory
