#include "workloads/nn/step_options.h"

#include "harness/device/device.h"

#include <algorithm>
#include <bit>

namespace assay::nn {

// Each block of logits reads and writes the whole gradient of the head's weight, hundreds of MB, and one that is small
// leaves most of a GPU idle. So a GPU holds as many as a sixteenth of its memory takes; a power of two, that the blocks
// are the same from run to run.
StepOptions for_device(StepOptions options, const Device& device) {
  constexpr std::uint64_t least = std::uint64_t{128} << 20, most = std::uint64_t{4} << 30;
  if (device.kind() != DeviceKind::cpu && options.logits_bytes == 0)
    options.logits_bytes =
        static_cast<std::int64_t>(std::clamp(std::bit_floor(device.info().memory_bytes / 16), least, most));
  return options;
}

}  // namespace assay::nn
