// Looks up rows and sums rows; kernels of embedding.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

struct EmbeddingRows {
  const std::int32_t* ids = nullptr;
  const std::int32_t* type_ids = nullptr;
  const void* table = nullptr;
  const void* positions = nullptr;  // or null
  const void* types = nullptr;      // or null
  void* y = nullptr;
  std::int64_t seq = 0;
  std::int64_t width = 0;
};

// Rows of a matrix: order[0 .. count), or first + i * stride if `order` is null.
struct RowList {
  const std::int32_t* order = nullptr;
  std::int64_t first = 0;
  std::int64_t stride = 0;
  std::int64_t count = 0;
};

// Indices: the input's type, then the output's; 0 is f32, 1 is bf16.
struct EmbeddingKernels {
  // Tokens [begin, end).
  using Forward = void (*)(const EmbeddingRows&, std::int64_t begin, std::int64_t end);
  // out[c] = or += the sum over the list of matrix[row][c], in f32, in the list's order; c in [begin, end).
  using SumRows = void (*)(const void* matrix, const RowList& list, std::int64_t width, void* out, bool accumulate,
                           std::int64_t begin, std::int64_t end);
  Forward forward[2][2];
  SumRows sum_rows[2][2];
};

}  // namespace assay::ops
