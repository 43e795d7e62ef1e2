// The CUDA handle behind a stream of the interface, and the GPU that this process works on.
#pragma once

#include "harness/device/device.h"

#include <cuda_runtime_api.h>

namespace assay::cuda {

// Makes this process's GPU the calling thread's current one, where it is not yet; CUDA keeps that for each thread.
void use_own_gpu();

// The handle, ready for the calling thread to enqueue work on.
inline cudaStream_t native(Stream& stream) {
  use_own_gpu();
  return static_cast<cudaStream_t>(stream.native());
}

}  // namespace assay::cuda
