// The throwing check macro of the CUDA runtime. Other libraries have theirs next to the code that calls them.
#pragma once

#include <cuda_runtime_api.h>

namespace assay::cuda {

// Throws Error with the call, its location, the error's name and meaning. Clears the runtime's last error.
[[noreturn]] void fail(cudaError_t error, const char* call, const char* file, int line);

#define ASSAY_CUDA(call)                                                                 \
  do {                                                                                   \
    if (const cudaError_t assay_error = (call); assay_error != cudaSuccess) [[unlikely]] \
      ::assay::cuda::fail(assay_error, #call, __FILE__, __LINE__);                       \
  } while (false)

}  // namespace assay::cuda
