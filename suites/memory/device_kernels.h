// The memory suite's kernels on a GPU, implemented in the CUDA module. Includes no CUDA header: the cases are in the
// binary.
#pragma once

#include "harness/device/device.h"
#include "suites/memory/values.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace assay::memory {

// One way to run a loop. A trial finds the fastest.
struct Variant {
  enum class Access {
    plain,
    streaming,  // evict-first loads and stores
    second,     // loads from the second-level cache, bypassing the first
  };

  int threads = 256;        // per block
  int blocks_per_unit = 0;  // per SM, of a grid that strides over the array; 0: one block per tile
  int unroll = 1;           // 16-byte accesses per array that a thread has in flight
  Access access = Access::plain;

  // "256 threads, 8 blocks an SM, unroll 4, streaming"
  std::string text() const {
    static constexpr const char* words[] = {"plain", "streaming", "second-level"};
    return std::to_string(threads) + " threads, " +
           (blocks_per_unit ? std::to_string(blocks_per_unit) + " blocks an SM" : std::string("a block a tile")) +
           ", unroll " + std::to_string(unroll) + ", " + words[static_cast<int>(access)];
  }
};

struct Arrays {
  double* out = nullptr;
  const double* x = nullptr;
  const double* y = nullptr;
  std::size_t elements = 0;  // a multiple of 8
  double* sum = nullptr;     // one element, for read and dot
  void* scratch = nullptr;   // scratch_bytes(), zero before the first pass
};

// Wrong elements, found on the device.
struct Wrong {
  static constexpr std::size_t kept = 20;
  std::uint64_t count = 0;
  std::uint64_t place[kept] = {};  // indices of some, in no order
};

// Every call enqueues and returns.
class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;
  // The variants to try for arrays that fit in the second-level cache, or do not.
  virtual std::vector<Variant> variants(Op op, bool in_cache) const = 0;
  virtual std::size_t scratch_bytes() const = 0;
  // Makes `passes` over the arrays in one kernel. Variants for arrays in the cache bypass the first level, so that it
  // does not help. The sum is that of all passes.
  virtual void run(Op op, const Variant& variant, const Arrays& arrays, std::uint64_t passes, Stream& stream) = 0;

  // Fills input array 0 or 1; NaN for any other number, so that elements that no loop wrote are noticed.
  virtual void fill(double* data, int array, std::size_t elements, Stream& stream) = 0;
  // Compares `data` with input array 0 or 1, or, for any other number, with the output of `op`. Adds to *wrong, which
  // is in device memory.
  virtual void compare(const double* data, Op op, int array, std::size_t elements, Wrong* wrong, Stream& stream) = 0;

  // One thread follows the cycle of lines (chase.h, with device addresses) from *position for `hops` dependent loads
  // that bypass the first-level cache, and updates *position.
  virtual void chase(const void** position, std::uint64_t hops, Stream& stream) = 0;
};

// From libassay-cuda.so, for the current device.
std::unique_ptr<DeviceKernels> load_device_kernels();

}  // namespace assay::memory
