// The memory suite's kernels on a GPU, as the CUDA module gives them. No CUDA header: cases are in the binary.
#pragma once

#include "harness/device/device.h"
#include "suites/memory/values.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace assay::memory {

// One way to run a loop; which is fastest is found by trying.
struct Variant {
  enum class Access {
    plain,
    streaming,  // evict-first loads and stores
    second,     // loads from the second-level cache: the first is passed by
  };

  int threads = 256;        // a block
  int blocks_per_unit = 0;  // of a grid that strides over the array; 0: a block for each piece of it
  int unroll = 1;           // 16-byte accesses of each array that a thread has in flight
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
  double* sum = nullptr;     // of read and dot, one element
  void* scratch = nullptr;   // scratch_bytes(), zero before the first pass
};

// Elements that are not what they should be, found on the device.
struct Wrong {
  static constexpr std::size_t kept = 20;
  std::uint64_t count = 0;
  std::uint64_t place[kept] = {};  // of any of them, in no order
};

// Everything is enqueued; nothing waits.
class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;
  // Those worth trying for arrays that lie in the second-level cache, or do not.
  virtual std::vector<Variant> variants(Op op, bool in_cache) const = 0;
  virtual std::size_t scratch_bytes() const = 0;
  // `passes` over the arrays in one kernel; those worth trying in the cache pass the first level by, so that it does
  // not help. The sum is that of all passes.
  virtual void run(Op op, const Variant& variant, const Arrays& arrays, std::uint64_t passes, Stream& stream) = 0;

  // Input array 0 or 1; NaN for any other number, so that an element that no loop wrote shows.
  virtual void fill(double* data, int array, std::size_t elements, Stream& stream) = 0;
  // Holds `data` against input array 0 or 1, or where `array` is neither against the output of `op`; adds to *wrong,
  // which is in device memory.
  virtual void compare(const double* data, Op op, int array, std::size_t elements, Wrong* wrong, Stream& stream) = 0;

  // One thread follows the cycle of lines (chase.h, addresses of the device) from *position for `hops` dependent loads
  // that pass the first-level cache by, and leaves *position where it ends.
  virtual void chase(const void** position, std::uint64_t hops, Stream& stream) = 0;
};

// From libassay-cuda.so, for the current device.
std::unique_ptr<DeviceKernels> load_device_kernels();

}  // namespace assay::memory
