// The CUDA handle behind a stream of the interface.
#pragma once

#include "harness/device/device.h"

#include <cuda_runtime_api.h>

namespace assay::cuda {

inline cudaStream_t native(Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

}  // namespace assay::cuda
