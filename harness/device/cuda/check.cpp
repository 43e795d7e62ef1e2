#include "harness/device/cuda/check.h"

#include "harness/core/out_of_memory.h"

namespace assay::cuda {

void fail(cudaError_t error, const char* call, const char* file, int line) {
  cudaGetLastError();
  const std::string text =
      fmt::format("{} failed: {} ({}) at {}:{}", call, cudaGetErrorString(error), cudaGetErrorName(error), file, line);
  if (error == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  throw Error(text);
}

}  // namespace assay::cuda
