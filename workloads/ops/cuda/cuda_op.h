// Common parts of ops that use our own kernels: names, supported types, launch shapes.
#pragma once

#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/native.h"
#include "harness/device/cuda/vector.h"
#include "workloads/ops/cuda/supported_types.h"
#include "workloads/ops/op.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace assay::ops {

// An op by our own kernels; isa() is the GPU's architecture.
template <typename Base>
class CudaOp : public Base {
 public:
  explicit CudaOp(Device& device)
      : units_(std::max(1, device.info().compute_units)), capability_(device.info().compute_capability) {}
  std::string implementation() const override { return "assay:" + isa(); }
  std::string isa() const override { return "sm_" + std::to_string(capability_); }

 protected:
  int units() const { return units_; }

 private:
  int units_;
  int capability_;
};

template <typename Interface, typename Implementation, typename Desc>
Made<Interface> make_unless(std::string problem, Device& device, const Desc& desc) {
  if (!problem.empty()) return Made<Interface>::no(std::move(problem));
  return std::unique_ptr<Interface>(std::make_unique<Implementation>(device, desc));
}

// Calls work.operator()<T>() for the element type of `dtype`, which is f32, bf16 or fp16.
template <typename Work>
void with_type(DType dtype, const Work& work) {
  switch (dtype) {
    case DType::bf16: return work.template operator()<__nv_bfloat16>();
    case DType::fp16: return work.template operator()<__half>();
    default: return work.template operator()<float>();
  }
}

// The same for every type that products are computed in; tf32 is stored as f32. Throws Error: "no WHAT for DTYPE".
template <typename Work>
void with_stored_type(DType dtype, const char* what, const Work& work) {
  switch (dtype) {
    case DType::f64: return work.template operator()<double>();
    case DType::f32:
    case DType::tf32:
    case DType::bf16:
    case DType::fp16: return with_type(dtype, work);
    default: refuse_type(what, dtype);
  }
}

// Blocks for `work` items at `per_block` each; at least one, at most `max`.
inline unsigned blocks_for(std::int64_t work, std::int64_t per_block, std::int64_t max = 0x7fffffff) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((work + per_block - 1) / per_block, 1, max));
}

}  // namespace assay::ops
