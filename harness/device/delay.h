// A pause on a stream, to rehearse slow links (--inject slow-link).
#pragma once

#include "harness/device/device.h"

namespace assay {

// Delays what is enqueued on `stream` after it, at every launch if a graph captures it. Blocks the caller on a CPU.
void delay(Device& device, Stream& stream, double seconds);

// The CUDA module's entry point.
using CudaDelay = void(Stream& stream, double seconds);
inline constexpr const char* cuda_delay_name = "assay_cuda_delay";

}  // namespace assay
