// Matrices copied into others of another width, height or type: what pads channels, crops them, casts weights and adds
// to gradients.
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

// to = from where both are, zero elsewhere; with `accumulate` it is added to what is there. Not between bf16 and fp16.
void convert_rows(const Rows& from, const Rows& to, bool accumulate, cudaStream_t stream);

}  // namespace assay::ops
