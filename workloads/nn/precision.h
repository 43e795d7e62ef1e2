// Which element types a training step uses, by role.
#pragma once

#include "harness/core/dtype.h"

#include <cstdint>
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
  // fp8: linear layers of blocks multiply operands of 8 bits, as Fp8Scaling has it; the rest is bf16, embedding, LM
  // head and other layers outside of blocks among it.
  bool fp8_linear = false;
};

// How tensors are rounded to 8 bits: activations and weights as e4m3, gradients of activations as e5m2 (Micikevicius et
// al. 2022, "FP8 formats for deep learning"), products added up in f32. Each tensor has a scale of its own, the type's
// largest number over the largest magnitude of the steps before ("delayed scaling" of NVIDIA's Transformer Engine,
// whose margin is 0 and whose primer has this length of history). Magnitudes are the largest over a step's
// micro-batches and over all ranks, so that every rank rounds alike.
struct Fp8Scaling {
  std::int64_t history = 16;  // steps
  int margin = 0;             // powers of two kept free above the largest magnitude
};
inline constexpr Fp8Scaling fp8_scaling{};

// f64 (reference device), f32, tf32, bf16, fp16, fp8. Throws UsageError for other names.
Precision precision_from(std::string_view name);

}  // namespace assay::nn
