#include "workloads/nn/precision.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"

#include <string>
#include <vector>

namespace assay::nn {

Precision precision_from(std::string_view name) {
  Precision precision;
  if (name == "tf32") {
    precision.product = DType::tf32;
    return precision;
  }
  if (name == "fp8") {
    precision.fp8_linear = true;
    name = name_of(DType::bf16);
  }
  const DType low = [&] {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::fp16})
      if (name == name_of(dtype)) return dtype;
    const std::vector<std::string> valid = {"f64", "f32", "tf32", "bf16", "fp16", "fp8"};
    throw UsageError(fmt::format("unknown precision \"{}\"{}", name, suggestion(name, valid)));
  }();
  precision.param = precision.compute = precision.product = low;
  if (low == DType::f64) precision.grad = precision.reduce = precision.master = DType::f64;
  precision.loss_scaling = low == DType::fp16;
  return precision;
}

}  // namespace assay::nn
