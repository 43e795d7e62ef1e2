// Shared by the stand-ins of cuDNN's graphs: plans within limits; tensors read as f32 and written back.
#pragma once

#include "harness/core/dtype.h"
#include "harness/core/error.h"
#include "harness/device/device.h"
#include "tests/emulation/runtime.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace assay::ops::cudnn {

// Those of the plans that the limits allow.
inline Plans offered(std::vector<std::shared_ptr<Plan>> plans, const Limits& limits) {
  if (!limits.name.empty()) std::erase_if(plans, [&](const auto& plan) { return plan->name() != limits.name; });
  if (plans.size() > limits.max_plans) plans.resize(limits.max_plans);
  return {std::move(plans), {}};
}

inline float read(const void* data, DType dtype, std::size_t i) {
  switch (dtype) {
    case DType::bf16: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case DType::fp16: return __half2float(static_cast<const __half*>(data)[i]);
    default: return static_cast<const float*>(data)[i];
  }
}

inline void write(void* data, DType dtype, std::size_t i, float value) {
  switch (dtype) {
    case DType::bf16: static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value); break;
    case DType::fp16: static_cast<__half*>(data)[i] = __float2half_rn(value); break;
    default: static_cast<float*>(data)[i] = value;
  }
}

inline std::vector<float> copy_of(const void* data, DType dtype, std::size_t count) {
  std::vector<float> copy(count);
  for (std::size_t i = 0; i < count; ++i) copy[i] = read(data, dtype, i);
  return copy;
}

inline void put(const std::vector<float>& from, void* to, DType dtype) {
  for (std::size_t i = 0; i < from.size(); ++i) write(to, dtype, i, from[i]);
}

inline void check_tensor(const void* data) {
  if (!emulation::known_to_device(data) || reinterpret_cast<std::uintptr_t>(data) % 16 != 0)
    throw Error("emulated cuDNN: a tensor is not device memory aligned to 16 bytes");
}

// The oracle's ops run immediately and ignore the stream.
class NoStream final : public Stream {
 public:
  void synchronize() override {}
};

}  // namespace assay::ops::cudnn
