// Work on GPUs that Device::copy does not do: copies by kernels, checks, and pairs of GPUs.
// Implemented in the CUDA module; this header includes no CUDA header.
#pragma once

#include "harness/core/clock.h"
#include "harness/device/device.h"
#include "suites/transfer/pattern.h"

#include <compare>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace assay::transfer {

// Copies up to this size also report times.
inline constexpr std::size_t small_bytes = 64u << 10;

// Seconds of each call of `copy`, which returns once its copy has arrived.
template <typename Copy>
std::vector<double> waits(const Copy& copy) {
  constexpr std::size_t min_copies = 20, max_copies = 500;
  constexpr double max_seconds = 0.1;
  std::vector<double> seconds;
  const Clock::time_point start = Clock::now();
  do {
    const Clock::time_point begin = Clock::now();
    copy();
    seconds.push_back(seconds_since(begin));
  } while (seconds.size() < min_copies || (seconds.size() < max_copies && seconds_since(start) < max_seconds));
  return seconds;
}

// From one GPU of this process to another.
struct PairWay {
  int from = 0;
  int to = 0;
  auto operator<=>(const PairWay&) const = default;
};
// Copies between GPUs that run at once, one per way.
struct PairOrder {
  std::vector<PairWay> ways;
  std::size_t bytes = 0;    // size of each copy
  bool access = true;       // peer access; without it the driver goes through the host
  bool write = false;       // the sending GPU makes the copy, else the receiving one
  bool by_kernel = false;   // on the GPU that makes it
  double seconds = 0.5;     // time of sampling
  int samples = 20;         // at most
  bool flip_a_bit = false;  // the fault bit-flip: after the copies of the first way, before the check
};
struct PairResult {
  std::vector<double> seconds;                // until a copy of every way is done; one per sample
  std::vector<std::vector<double>> by_way{};  // the same, of each way by itself
  std::vector<double> waited{};  // time of single copies until the host noticed their end; only for small_bytes or less
  std::optional<int> max_gated{};  // as in Measurement, in copies of a way
  std::vector<int> host_cpus{};    // CPUs that the measuring thread could use
  std::vector<Wrong> wrong{};      // wrong elements of each way
};

class DeviceCopies {
 public:
  virtual ~DeviceCopies() = default;
  // Enqueues a copy. Addresses are aligned to 16 bytes; `from` and `to` are memory of this GPU or pinned. `at_once`:
  // the number of copies that run side by side, this one included; each leaves room for the others on every SM.
  virtual void copy(void* to, const void* from, std::size_t bytes, int at_once, Stream& stream) = 0;
  virtual void fill(void* data, std::size_t bytes, Stream& stream) = 0;
  // Adds to *wrong, which is in device memory.
  virtual void compare(const void* data, std::size_t bytes, Wrong* wrong, Stream& stream) = 0;

  // GPUs that this process sees.
  virtual int gpus() const = 0;
  // Whether GPU `gpu` can read and write the memory of GPU `other`.
  virtual bool can_access(int gpu, int other) const = 0;
  // Waits for the result. Throws Error.
  virtual PairResult measure(const PairOrder& order) = 0;
};

// From libassay-cuda.so, for the current device.
std::unique_ptr<DeviceCopies> load_device_copies();

}  // namespace assay::transfer
