// Finds non-finite values in arrays on a device.
#pragma once

#include "workloads/nn/arrays.h"
#include "workloads/nn/step_memory.h"

#include <vector>

namespace assay::nn {

class Probe {
 public:
  Probe(Device& device, Stream& stream) : device_(device), stream_(stream) {}

  bool finite(const void* values, DType dtype, std::int64_t count) {
    copy_.resize(static_cast<std::size_t>(count) * size_of(dtype));
    device_.copy(copy_.data(), values, copy_.size(), stream_);
    stream_.synchronize();
    return all_finite(copy_.data(), dtype, count);
  }
  // Ignores the tensor's padding.
  bool finite(const void* values, const TensorInfo& info) {
    const auto count = static_cast<std::int64_t>(info.bytes / size_of(info.dtype));
    const bool whole = finite(values, info.dtype, count);
    if (whole || info.row == info.stride) return whole;
    for (std::int64_t at = 0; at < count; at += info.stride)
      if (!all_finite(copy_.data() + static_cast<std::size_t>(at) * size_of(info.dtype), info.dtype, info.row))
        return false;
    return true;
  }

 private:
  Device& device_;
  Stream& stream_;
  std::vector<std::byte> copy_;
};

// Restores the running statistics after a step was run again.
class RunningStatisticsGuard {
 public:
  RunningStatisticsGuard(const StepPlan& plan, const StepMemory& memory, Device& device, Stream& stream)
      : memory_(memory), device_(device), stream_(stream), saved_(plan.layout.running_bytes) {
    device_.copy(saved_.data(), memory_.running(), saved_.size(), stream_);
    stream_.synchronize();
  }
  ~RunningStatisticsGuard() {
    device_.copy(memory_.running(), saved_.data(), saved_.size(), stream_);
    stream_.synchronize();
  }
  RunningStatisticsGuard(const RunningStatisticsGuard&) = delete;
  RunningStatisticsGuard& operator=(const RunningStatisticsGuard&) = delete;

 private:
  const StepMemory& memory_;
  Device& device_;
  Stream& stream_;
  std::vector<std::byte> saved_;
};

}  // namespace assay::nn
