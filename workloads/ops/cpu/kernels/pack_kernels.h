// Weights from f32 masters into panels; the tables behind weight_pack.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// Of a matrix (K, N) the packed form has panels of `width` columns; a panel holds all rows, `depth` neighbouring ones
// interleaved: element (k, n) lies at ((n / width * rows + k) / depth * width + n % width) * depth + k % depth, with
// k's remainder taken last. Rows and columns beyond the matrix are zero.
struct PackedPanels {
  const float* from = nullptr;
  void* to = nullptr;
  std::int64_t k = 0, n = 0;
  std::int64_t rows = 0;   // of a panel: k rounded up
  std::int64_t width = 0;  // a multiple of 16
};

struct PackKernels {
  static constexpr std::int64_t granule = 16;  // columns of a step of `across`
  static constexpr std::int64_t tall = 32;     // rows of a step of `along`
  using Steps = void (*)(const PackedPanels&, std::int64_t begin, std::int64_t end);
  // from (N, K): steps [begin, end) of columns, ceil(padded N / granule) in all.
  Steps across_f32, across_bf16;
  // from (K, N): steps of rows, ceil(rows / tall) in all.
  Steps along_bf16;
};

}  // namespace assay::ops
