// Describes the GPU for tests/gpu/gpu_dump.cpp, in full: tests without a GPU take the description for the real one.
#include "harness/core/streams.h"
#include "harness/device/cuda/check.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/blaslt.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <fmt/format.h>

#include <string>

namespace assay::ops {

namespace {

// {"1": 1024, ...}: every attribute of the device by its number in cudaDeviceAttr; those that are refused by the error.
std::string attributes(int device) {
  std::string text;
  for (int id = 1; id < cudaDevAttrMax; ++id) {
    int value = 0;
    const cudaError_t error = cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(id), device);
    if (error != cudaSuccess) cudaGetLastError();
    text +=
        fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", id,
                    error == cudaSuccess ? fmt::format("{}", value) : fmt::format("\"{}\"", cudaGetErrorName(error)));
  }
  return "{" + text + "}";
}

}  // namespace

}  // namespace assay::ops

// JSON: what CUDA's runtime says of this process's GPU, and what cuDNN does.
extern "C" void assay_describe_gpu(std::string* cuda, std::string* cudnn) {
  using namespace assay;
  cuda::use_own_gpu();
  int device = 0, driver = 0, runtime = 0;
  cudaDeviceProp properties{};
  ASSAY_CUDA(cudaGetDevice(&device));
  ASSAY_CUDA(cudaGetDeviceProperties(&properties, device));
  ASSAY_CUDA(cudaDriverGetVersion(&driver));
  ASSAY_CUDA(cudaRuntimeGetVersion(&runtime));
  *cuda = fmt::format(
      "{{\"name\": \"{}\", \"driver\": {}, \"runtime\": {}, \"libraries\": \"{}; {}\", \"memory\": {}, \"attributes\": "
      "{}}}\n",
      properties.name, driver, runtime, ops::blaslt_version_text(), ops::cudnn::version(), properties.totalGlobalMem,
      ops::attributes(device));
  try {
    *cudnn = ops::cudnn::device_description() + "\n";
  } catch (const Error& error) {  // before cuDNN 9.8, or a build without it
    say("{}", error.what());
    *cudnn = "{\"error\": \"cuDNN does not describe its GPU\"}\n";
  }
}
