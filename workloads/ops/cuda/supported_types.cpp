#include "workloads/ops/cuda/supported_types.h"

#include "harness/core/error.h"

namespace assay::ops {

std::string unless_f32_bf16_or_fp16(std::string_view op, std::initializer_list<DType> types) {
  for (const DType dtype : types)
    if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::fp16)
      return fmt::format("the cuda backend's {} is for f32, bf16 and fp16, not {}", op, name_of(dtype));
  return {};
}

void refuse_type(const char* what, DType dtype) { throw Error(fmt::format("no {} for {}", what, name_of(dtype))); }

}  // namespace assay::ops
