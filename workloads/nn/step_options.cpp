#include "workloads/nn/step_options.h"

#include <algorithm>

namespace assay::nn {

DeviceProfile profile_of(const Device& device) { return {device.kind(), device.info().memory_bytes}; }

// Each block of logits reads and writes the whole gradient of the head's weight, hundreds of MB, and small blocks leave
// most of a GPU idle. So blocks use up to a sixteenth of a GPU's memory, rounded down to a power of two so that they
// are the same in every run.
StepOptions for_device(StepOptions options, const DeviceProfile& device) {
  constexpr std::uint64_t min_bytes = std::uint64_t{128} << 20, max_bytes = std::uint64_t{4} << 30;
  if (device.kind != DeviceKind::cpu && options.logits_bytes == 0)
    options.logits_bytes =
        static_cast<std::int64_t>(std::clamp(std::bit_floor(device.memory_bytes / 16), min_bytes, max_bytes));
  return options;
}

}  // namespace assay::nn
