// The only way to launch a kernel: converts arguments to the kernel's parameter types and checks the launch by what the
// call returns (cudaGetLastError may return an earlier call's error).
#pragma once

#include "harness/device/cuda/check.h"

#include <cuda_runtime.h>

#include <cstddef>

#ifdef ASSAY_CUDA_EMULATED
#include "tests/emulation/launch.h"
#endif

namespace assay::cuda {

// The kernel declares its `shared` bytes of dynamic shared memory by ASSAY_DYNAMIC_SHARED(T, name); more than 48 KiB
// needs cudaFuncSetAttribute first.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream,
            Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  ASSAY_CUDA(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

// The kernel's dynamic shared memory as an array of T, aligned to 16 bytes. One type per kernel.
#ifndef ASSAY_CUDA_EMULATED
#define ASSAY_DYNAMIC_SHARED(T, name)                                   \
  extern __shared__ __align__(16) unsigned char assay_dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(assay_dynamic_shared)
#endif

}  // namespace assay::cuda
