// Memory that a case takes: of this process as the kernel counts it, or of its GPU.
#pragma once

#include "harness/device/device.h"

#include <cstdint>
#include <optional>

namespace assay::training {

// Resident bytes now; nothing where /proc tells none.
std::optional<std::uint64_t> resident_bytes();
// The most there have been since forget_peak(), or since the process began where the kernel cannot forget.
std::optional<std::uint64_t> peak_resident_bytes();
// False when the kernel cannot.
bool forget_peak();

// Counts from its construction on.
class MemoryWatch {
 public:
  explicit MemoryWatch(Device& device);
  // The most bytes held: resident on a CPU; on a GPU those taken since the start, of which none is given back before
  // the end. Nothing where nobody counts them, or others take of the same GPU.
  std::optional<std::uint64_t> peak() const;
  // By how much the peak is above what was held at the start.
  std::optional<double> growth() const;

 private:
  Device& device_;
  std::optional<std::uint64_t> free_, resident_;  // at the start
};

}  // namespace assay::training
