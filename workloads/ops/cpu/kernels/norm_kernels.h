// Rows of layer norm and RMS norm; kernels of norm.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

struct NormForwardRows {
  bool layer = true;
  const void* x = nullptr;  // (rows, columns)
  const void* residual = nullptr;
  void* sum = nullptr;  // written if there is a residual
  const float* weight = nullptr;
  const float* bias = nullptr;
  void* y = nullptr;
  float* mean = nullptr;
  float* inverse = nullptr;
  std::int64_t columns = 0;
  float epsilon = 0;
};

struct NormBackwardRows {
  bool layer = true;
  const void* dy = nullptr;  // (rows, columns)
  const void* sum = nullptr;
  const void* dsum = nullptr;  // or null
  const float* weight = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
  void* dx = nullptr;
  float* dweight = nullptr;  // (columns), added to
  float* dbias = nullptr;    // (columns), added to; layer norm
  std::int64_t columns = 0;
};

// Rows [begin, end), in f32 and bf16.
struct NormKernels {
  using Forward = void (*)(const NormForwardRows&, std::int64_t begin, std::int64_t end);
  using Backward = void (*)(const NormBackwardRows&, std::int64_t begin, std::int64_t end);
  Forward forward_f32, forward_bf16;
  Backward backward_f32, backward_bf16;
  // out[i] = or += the sum over parts p of partials[p * stride + i]; i in [begin, end).
  void (*sum_parts)(const float* partials, int parts, std::int64_t stride, float* out, bool accumulate,
                    std::int64_t begin, std::int64_t end);
};

}  // namespace assay::ops
