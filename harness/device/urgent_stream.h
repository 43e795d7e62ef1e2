// A stream whose work goes first: for collectives beside a step that fills the device.
#pragma once

#include "harness/device/device.h"

#include <memory>

namespace assay {

// Its kernels, also those of a graph that captured them, are given free places on the device before the kernels of
// other streams. As any other stream on a CPU.
std::unique_ptr<Stream> make_urgent_stream(Device& device);

// The CUDA module's; the caller owns the stream.
using CudaUrgentStream = Stream*();
inline constexpr const char* cuda_urgent_stream_name = "assay_cuda_urgent_stream";

}  // namespace assay
