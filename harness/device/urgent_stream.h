// A high-priority stream, for collectives that overlap a step that fills the device.
#pragma once

#include "harness/device/device.h"

#include <memory>

namespace assay {

// Its kernels, also in graphs that captured them, are scheduled before the kernels of other streams. On a CPU, an
// ordinary stream.
std::unique_ptr<Stream> make_urgent_stream(Device& device);

// The CUDA module's entry point; the caller owns the stream.
using CudaUrgentStream = Stream*();
inline constexpr const char* cuda_urgent_stream_name = "assay_cuda_urgent_stream";

}  // namespace assay
