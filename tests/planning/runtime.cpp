#include "tests/planning/runtime.h"

#include "harness/device/cuda/native.h"

#include <cuda_runtime_api.h>
#include <nlohmann/json.hpp>

namespace assay::planning {

namespace {
nlohmann::json gpu;
}

std::string describe(const std::string& description) {
  gpu = nlohmann::json::parse(description);
  return gpu.at("deviceName").get<std::string>();
}

}  // namespace assay::planning

namespace assay::cuda {
void use_own_gpu() {}
}  // namespace assay::cuda

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const auto of = [](const char* name) { return assay::planning::gpu.value(name, 0); };
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = of("deviceVer") / 100; break;
    case cudaDevAttrComputeCapabilityMinor: *value = of("deviceVer") % 100 / 10; break;
    case cudaDevAttrMultiProcessorCount: *value = of("multiProcessorCount"); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = of("maxSharedMemoryPerBlockOptin"); break;
    default: return cudaErrorNotSupported;
  }
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t) { return "a stand-in of CUDA's runtime cannot do that"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

// What only running plans calls; the parameters do not matter to a function that refuses.
#define ASSAY_REFUSED(name)            \
  int name##_refused() __asm__(#name); \
  int name##_refused() { return cudaErrorNotSupported; }
ASSAY_REFUSED(cudaDeviceSynchronize)
ASSAY_REFUSED(cudaEventCreate)
ASSAY_REFUSED(cudaEventDestroy)
ASSAY_REFUSED(cudaEventElapsedTime)
ASSAY_REFUSED(cudaEventRecord)
ASSAY_REFUSED(cudaEventSynchronize)
ASSAY_REFUSED(cudaFree)
ASSAY_REFUSED(cudaGetDriverEntryPointByVersion)
ASSAY_REFUSED(cudaGraphDestroy)
ASSAY_REFUSED(cudaGraphRetainUserObject)
ASSAY_REFUSED(cudaKernelSetAttributeForDevice)
ASSAY_REFUSED(cudaLaunchKernel)
ASSAY_REFUSED(cudaLibraryGetKernel)
ASSAY_REFUSED(cudaLibraryLoadData)
ASSAY_REFUSED(cudaLibraryUnload)
ASSAY_REFUSED(cudaMalloc)
ASSAY_REFUSED(cudaMemcpyAsync)
ASSAY_REFUSED(cudaMemsetAsync)
ASSAY_REFUSED(cudaPointerGetAttributes)
ASSAY_REFUSED(cudaStreamBeginCapture)
ASSAY_REFUSED(cudaStreamCreate)
ASSAY_REFUSED(cudaStreamDestroy)
ASSAY_REFUSED(cudaStreamEndCapture)
ASSAY_REFUSED(cudaStreamGetCaptureInfo)
ASSAY_REFUSED(cudaStreamIsCapturing)
ASSAY_REFUSED(cudaStreamSynchronize)
ASSAY_REFUSED(cudaThreadExchangeStreamCaptureMode)
ASSAY_REFUSED(cudaUserObjectCreate)
ASSAY_REFUSED(cudaUserObjectRelease)

}  // extern "C"
