// Replaces nvcc when a kernel's source is compiled for the emulation: launch, indices (block.h), barriers, warp
// collectives, shared memory. Arithmetic and atomics are in intrinsics.h.
#pragma once

#include "tests/emulation/block.h"
#include "tests/emulation/intrinsics.h"
#include "tests/emulation/runtime.h"

#include <cuda_runtime.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

// Each array has its own section, since functions and templates may not share one; the emulation finds them by name and
// fills them with garbage before a block runs.
#define ASSAY_EMULATION_TEXT_OF(x) #x
#define ASSAY_EMULATION_TEXT(x) ASSAY_EMULATION_TEXT_OF(x)
#undef __shared__
#define __shared__ static __attribute__((section("assay_shared_" ASSAY_EMULATION_TEXT(__COUNTER__))))
#undef __launch_bounds__
#define __launch_bounds__(...)
#define cudaLaunchKernelEx ::assay::emulation::launch
#define ASSAY_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(::assay::emulation::dynamic_shared())

namespace assay::emulation {

// Enqueues the kernel; the arguments are copied.
template <typename... Parameters, typename... Arguments>
cudaError_t launch(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments&&... arguments) {
  const dim3 grid = config->gridDim, block = config->blockDim;
  const std::size_t shared = config->dynamicSmemBytes;
  const void* address = reinterpret_cast<const void*>(kernel);
  if (const cudaError_t error = check_launch(address, grid, block, shared); error != cudaSuccess) return error;
  if (const cudaError_t error = check_stream(config->stream); error != cudaSuccess) return error;
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  };
  [[maybe_unused]] auto check = [&, index = std::size_t{0}](const auto& argument) mutable {
    if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(argument)>>)
      check_argument(address, index, static_cast<const void*>(argument));
    ++index;
  };
  (check(arguments), ...);
  return enqueue(config->stream, [=, call = Call{kernel, {arguments...}}]() mutable {
    const auto thread = [](void* context) {
      const auto& [function, values] = *static_cast<const Call*>(context);
      std::apply(function, values);
    };
    run_kernel(address, grid, block, shared, thread, &call);
  });
}

template <typename T>
T shuffle(unsigned mask, T value, unsigned source) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = warp_collective(Collective::shuffle, mask, bits, source);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

// First lane of this lane's group of `width` lanes.
inline unsigned group_start(int width) { return lane() & ~static_cast<unsigned>(width - 1); }

inline unsigned vote(Collective kind, unsigned mask, unsigned value) {
  return static_cast<unsigned>(warp_collective(kind, mask, value, 0));
}

}  // namespace assay::emulation

inline void __syncthreads() { assay::emulation::block_barrier(0); }
inline int __syncthreads_count(int predicate) { return assay::emulation::block_barrier(predicate).count; }
inline int __syncthreads_or(int predicate) { return assay::emulation::block_barrier(predicate).count > 0; }
inline int __syncthreads_and(int predicate) {
  const auto votes = assay::emulation::block_barrier(predicate);
  return votes.count == votes.threads;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  assay::emulation::warp_collective(assay::emulation::Collective::sync, mask, 0, 0);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  namespace e = assay::emulation;
  return e::shuffle(mask, value,
                    e::group_start(width) + (static_cast<unsigned>(source) & static_cast<unsigned>(width - 1)));
}
// Beyond the group a lane keeps its own value.
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize) {
  namespace e = assay::emulation;
  const unsigned source = e::lane() ^ static_cast<unsigned>(lanes);
  return e::shuffle(mask, value, source < e::group_start(width) + static_cast<unsigned>(width) ? source : e::lane());
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = warpSize) {
  namespace e = assay::emulation;
  return e::shuffle(mask, value, e::lane() >= e::group_start(width) + lanes ? e::lane() - lanes : e::lane());
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = warpSize) {
  namespace e = assay::emulation;
  const unsigned end = e::group_start(width) + static_cast<unsigned>(width);
  return e::shuffle(mask, value, e::lane() + lanes < end ? e::lane() + lanes : e::lane());
}

inline unsigned __activemask() { return assay::emulation::live_lanes(); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return assay::emulation::vote(assay::emulation::Collective::ballot, mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
inline unsigned __match_any_sync(unsigned mask, unsigned value) {
  return assay::emulation::vote(assay::emulation::Collective::match, mask, value);
}
inline unsigned __match_any_sync(unsigned mask, int value) {
  return __match_any_sync(mask, static_cast<unsigned>(value));
}

#define ASSAY_EMULATION_REDUCE(name, unsigned_kind, signed_kind)                                                \
  inline unsigned name(unsigned mask, unsigned value) {                                                         \
    return assay::emulation::vote(assay::emulation::Collective::unsigned_kind, mask, value);                    \
  }                                                                                                             \
  inline int name(unsigned mask, int value) {                                                                   \
    return static_cast<int>(                                                                                    \
        assay::emulation::vote(assay::emulation::Collective::signed_kind, mask, static_cast<unsigned>(value))); \
  }
ASSAY_EMULATION_REDUCE(__reduce_add_sync, add, add)
ASSAY_EMULATION_REDUCE(__reduce_min_sync, min, min_signed)
ASSAY_EMULATION_REDUCE(__reduce_max_sync, max, max_signed)
ASSAY_EMULATION_REDUCE(__reduce_and_sync, bit_and, bit_and)
ASSAY_EMULATION_REDUCE(__reduce_or_sync, bit_or, bit_or)
ASSAY_EMULATION_REDUCE(__reduce_xor_sync, bit_xor, bit_xor)
#undef ASSAY_EMULATION_REDUCE
