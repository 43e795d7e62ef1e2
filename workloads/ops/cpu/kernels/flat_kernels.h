// Passes over flat arrays: casts, sums, optimizers, the gradient norm; kernels of elementwise.cpp and optimizer.cpp.
#pragma once

#include "workloads/ops/functors/optimizer.h"

#include <cstdint>

namespace assay::ops {

// Buffers of an optimizer pass; `parameter` is null if there is no rounded copy.
struct OptimizerBuffers {
  float* master = nullptr;
  const void* gradient = nullptr;
  float* moment1 = nullptr;
  float* moment2 = nullptr;
  void* parameter = nullptr;
};

// Elements [begin, end). Indices: the types of the two operands named behind; 0 is f32, 1 is bf16.
struct FlatKernels {
  // out = a, or a + b if b is not null.
  using Elementwise = void (*)(const void* a, const void* b, void* out, std::int64_t begin, std::int64_t end);
  // All elements share a decay.
  using Adamw = void (*)(const OptimizerBuffers&, const functors::AdamwUpdate<float>&, double decay, std::int64_t begin,
                         std::int64_t end);
  using Sgd = void (*)(const OptimizerBuffers&, const functors::SgdUpdate<float>&, double decay, std::int64_t begin,
                       std::int64_t end);
  using SumOfSquares = double (*)(const void* x, std::int64_t begin, std::int64_t end);
  Elementwise elementwise[2][2];  // in, out
  Adamw adamw[2][2];              // gradient, parameter
  Sgd sgd[2][2];
  SumOfSquares sum_of_squares[2];
};

}  // namespace assay::ops
