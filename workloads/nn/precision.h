// Which element types a training step uses, by role.
#pragma once

#include "harness/core/dtype.h"

#include <string_view>

namespace assay::nn {

struct Precision {
  DType param = DType::f32;    // of the weights that layers are given
  DType compute = DType::f32;  // of activations, their gradients and the operands of products
  DType grad = DType::f32;     // of the parameters' gradients
  DType reduce = DType::f32;   // of the gradients on their way between ranks
  DType master = DType::f32;   // of the weights and moments that the optimizer updates
  bool loss_scaling = false;   // fp16
};

// f64 (reference device), f32, tf32, bf16, fp16, fp8. Throws UsageError for other names.
Precision precision_from(std::string_view name);

}  // namespace assay::nn
