// Which element types a training step uses, by role.
#pragma once

#include "harness/core/dtype.h"

#include <cstdint>
#include <string_view>

namespace assay::nn {

struct Precision {
  DType param = DType::f32;    // type of the weights that layers read
  DType compute = DType::f32;  // type of activations and their gradients
  DType product = DType::f32;  // type of the operands of matrix products, convolutions and attention
  DType grad = DType::f32;     // type of the parameters' gradients
  DType reduce = DType::f32;   // type of the gradients as they are reduced over ranks
  DType master = DType::f32;   // type of the weights and moments that the optimizer updates
  bool loss_scaling = false;   // fp16
  // fp8: linear layers of blocks multiply 8-bit operands, see Fp8Scaling; everything else is bf16, including embedding,
  // LM head and other layers outside of blocks.
  bool fp8_linear = false;
};

// How tensors are rounded to 8 bits: activations and weights as e4m3, gradients of activations as e5m2 (Micikevicius et
// al. 2022, "FP8 formats for deep learning"), products accumulated in f32. Each tensor has its own scale, the type's
// maximum over the largest magnitude in recent steps ("delayed scaling" of NVIDIA's Transformer Engine, whose margin is
// 0 and whose primer uses this history length). Magnitudes are maxima over a step's micro-batches and over all ranks,
// so that every rank rounds alike.
struct Fp8Scaling {
  std::int64_t history = 16;  // steps
  int margin = 0;             // headroom above the largest magnitude, in powers of two
};
inline constexpr Fp8Scaling fp8_scaling{};

// f64 (reference device), f32, tf32, bf16, fp16, fp8. Throws UsageError for other names.
Precision precision_from(std::string_view name);

}  // namespace assay::nn
