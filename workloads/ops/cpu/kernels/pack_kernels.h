// Packs f32 masters into panels of weights; kernels of weight_pack.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// The packed form of a matrix (K, N) consists of panels of `width` columns; a panel has all rows, with groups of
// `depth` neighbouring rows interleaved: element (k, n) is at
//   ((n / width * rows + k) / depth * width + n % width) * depth + k % depth
// Rows and columns beyond the matrix are zero.
struct PackedPanels {
  const float* from = nullptr;
  void* to = nullptr;
  std::int64_t k = 0, n = 0;
  std::int64_t rows = 0;   // rows of a panel: k rounded up
  std::int64_t width = 0;  // a multiple of 16
};

struct PackKernels {
  static constexpr std::int64_t granule = 16;  // columns per step of `across`
  static constexpr std::int64_t tall = 32;     // rows per step of `along`
  using Steps = void (*)(const PackedPanels&, std::int64_t begin, std::int64_t end);
  // From (N, K): steps [begin, end) of columns, out of ceil(padded N / granule).
  Steps across_f32, across_bf16;
  // From (K, N): steps of rows, out of ceil(rows / tall).
  Steps along_bf16;
};

}  // namespace assay::ops
