// The CUDA handle behind a Stream, and this process's GPU.
#pragma once

#include "harness/device/device.h"

#include <cuda_runtime_api.h>

namespace assay::cuda {

// Makes this process's GPU the calling thread's current one, if it is not yet; CUDA keeps that per thread.
void use_own_gpu();

// The stream's handle; the calling thread may enqueue on it at once.
inline cudaStream_t native(Stream& stream) {
  use_own_gpu();
  return static_cast<cudaStream_t>(stream.native());
}

}  // namespace assay::cuda
