// Memory used by a case: of this process as the kernel counts it, or of its GPU.
#pragma once

#include "harness/device/device.h"

#include <cstdint>
#include <optional>

namespace assay {

// Resident bytes now; nullopt if /proc has no count.
std::optional<std::uint64_t> resident_bytes();
// The peak since forget_peak(), or since the process started if the kernel cannot reset it.
std::optional<std::uint64_t> peak_resident_bytes();
// False if the kernel cannot.
bool forget_peak();

// Counts from its construction.
class MemoryWatch {
 public:
  explicit MemoryWatch(Device& device);
  // Peak bytes: resident on a CPU; on a GPU those allocated since the start, none of which are freed before the end.
  // Nullopt if there is no count, or if other processes share the GPU.
  std::optional<std::uint64_t> peak() const;
  // The peak less the bytes at the start.
  std::optional<double> growth() const;

 private:
  Device& device_;
  std::optional<std::uint64_t> free_, resident_;  // at the start
};

}  // namespace assay
