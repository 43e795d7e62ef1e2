// Which element types a training step uses, by role.
#pragma once

#include "harness/core/dtype.h"

#include <string_view>

namespace assay::nn {

struct Precision {
  DType param = DType::f32;    // of the weights that layers are given
  DType compute = DType::f32;  // of activations and their gradients
  DType product = DType::f32;  // what matrix products, convolutions and attention take their operands as
  DType grad = DType::f32;     // of the parameters' gradients
  DType reduce = DType::f32;   // of the gradients on their way between ranks
  DType master = DType::f32;   // of the weights and moments that the optimizer updates
  bool loss_scaling = false;   // fp16
  // fp8: linear layers of blocks multiply operands of 8 bits (e4m3, gradients e5m2) that are scaled by the largest of
  // the steps before; the rest is bf16.
  bool fp8_linear = false;
};

// f64 (reference device), f32, tf32, bf16, fp16, fp8. Throws UsageError for other names.
Precision precision_from(std::string_view name);

}  // namespace assay::nn
