#include "harness/device/cuda/check.h"

#include "harness/core/error.h"

namespace assay::cuda {

void fail(cudaError_t error, const char* call, const char* file, int line) {
  cudaGetLastError();
  throw Error(
      fmt::format("{} failed: {} ({}) at {}:{}", call, cudaGetErrorString(error), cudaGetErrorName(error), file, line));
}

}  // namespace assay::cuda
