// Sums the columns of an f32 matrix of partial results in a fixed order: the second stage of parameters' gradients.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::ops {

struct ColumnSums {
  const float* partials = nullptr;  // (parts, row stride): one or two pieces next to each other
  std::int64_t parts = 0;
  std::int64_t row_stride = 0;    // elements from one part to the next
  std::int64_t columns = 0;       // per piece
  std::int64_t piece_stride = 0;  // elements from one piece to the next
  float* first = nullptr;         // (columns) of the first piece
  float* second = nullptr;        // sums of the second piece; null: there is only one
  bool accumulate = false;        // adds to the present values
};

void enqueue_column_sums(const ColumnSums& sums, cudaStream_t stream);

}  // namespace assay::ops
