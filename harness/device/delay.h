// Time that passes on a stream and does nothing else: for drills (--inject slow-link).
#pragma once

#include "harness/device/device.h"

namespace assay {

// Holds up what is enqueued on `stream` after it, also at every launch of a graph that captured it. Inline on a CPU.
void delay(Device& device, Stream& stream, double seconds);

// The CUDA module's.
using CudaDelay = void(Stream& stream, double seconds);
inline constexpr const char* cuda_delay_name = "assay_cuda_delay";

}  // namespace assay
