#include "workloads/nn/precision.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace assay::nn {

Precision precision_from(std::string_view name) {
  const DType low = [&] {
    for (const DType dtype : {DType::f64, DType::f32, DType::tf32, DType::bf16, DType::fp16})
      if (name == name_of(dtype)) return dtype;
    if (name == "fp8") return DType::fp8_e4m3;
    const std::vector<std::string> valid = {"f64", "f32", "tf32", "bf16", "fp16", "fp8"};
    throw UsageError(fmt::format("unknown precision \"{}\"{}", name, suggestion(name, valid)));
  }();
  Precision precision;
  precision.param = precision.compute = low;
  if (low == DType::f64) precision.grad = precision.reduce = precision.master = DType::f64;
  precision.loss_scaling = low == DType::fp16;
  return precision;
}

}  // namespace assay::nn
