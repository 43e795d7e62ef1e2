// Copies matrices to ones of another width, height or type: to pad and crop channels, cast weights and accumulate
// gradients.
#pragma once

#include "harness/core/dtype.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::ops {

// A dense matrix (rows, width) of f32, bf16 or fp16.
struct Rows {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t width = 0;
};

// to = from where they overlap, zero elsewhere; with `accumulate`, adds to `to` instead. Not between bf16 and fp16.
void convert_rows(const Rows& from, const Rows& to, bool accumulate, cudaStream_t stream);

}  // namespace assay::ops
