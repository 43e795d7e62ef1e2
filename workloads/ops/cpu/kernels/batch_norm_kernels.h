// Passes of batch norm over one thread's rows; kernels of batch_norm.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// Per-channel arrays are f32, padded to a multiple of this; arrays (rows, channels) have the op's type.
inline constexpr std::int64_t channel_padding = 16;

// sums[c] += sum of x - shift over the rows, sums[padded + c] += sum of (x - shift)^2.
struct BatchNormStatistics {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  const void* x = nullptr;       // (rows, channels)
  const float* shift = nullptr;  // (padded), near the mean
  float* partial = nullptr;      // (2, padded), scratch
  double* sums = nullptr;        // (2, padded)
};

// y = relu(factor * (x - mean) + offset + residual)
struct BatchNormApply {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  bool relu = false;
  bool stream = false;  // y is large and aligned: its stores bypass the caches
  const void* x = nullptr;
  const void* residual = nullptr;  // or null
  const float* mean = nullptr;
  const float* factor = nullptr;
  const float* offset = nullptr;
  void* y = nullptr;
};

// The gradient before ReLU: g = y > 0 ? dy + other : 0.
struct BatchNormGradient {
  const void* dy = nullptr;
  const void* other = nullptr;  // or null
  const void* y = nullptr;      // null without ReLU
};

// sums[c] += sum of g, sums[padded + c] += sum of g * (x - mean); dresidual = g.
struct BatchNormReduce {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  bool stream = false;
  BatchNormGradient gradient;
  const void* x = nullptr;
  const float* mean = nullptr;
  void* dresidual = nullptr;  // or null; may be dy or other
  float* partial = nullptr;
  double* sums = nullptr;
};

// dx = factor * g + slope * (x - mean) + offset
struct BatchNormInput {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  bool stream = false;
  BatchNormGradient gradient;
  const void* x = nullptr;
  const float* mean = nullptr;
  const float* factor = nullptr;
  const float* slope = nullptr;
  const float* offset = nullptr;
  void* dx = nullptr;  // may be dy or other
};

struct BatchNormKernels {
  struct Typed {
    void (*statistics)(const BatchNormStatistics&);
    void (*apply)(const BatchNormApply&);
    void (*reduce)(const BatchNormReduce&);
    void (*input)(const BatchNormInput&);
    // to[c] += factor * x[c], for one row.
    void (*add_row)(const void* x, std::int64_t channels, float factor, float* to);
  };
  Typed f32;
  Typed bf16;
};

}  // namespace assay::ops
