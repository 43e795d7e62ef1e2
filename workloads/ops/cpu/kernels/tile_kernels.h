// Products of bf16 by tile instructions; kernels of tile_matmul.cpp.
#pragma once

#include "workloads/ops/cpu/kernels/product_kernels.h"

#include <cstdint>

namespace assay::ops {

// out (m, n) = op(a) (m, k) x b (k, n), where b is in panels as pack_kernels.h has them: `TileKernels::width`
// columns wide, pairs of rows interleaved, k rounded up to a multiple of `TileKernels::depth`.
struct TileProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t padded_k = 0;
  bool transpose_a = false;     // a is (k, m)
  std::int64_t block_rows = 0;  // rows of a that are packed at a time, a multiple of height
  std::int64_t chunk = 0;       // k that are packed at a time, a multiple of depth
  bool out_is_f32 = false;      // else bf16
  bool bias_is_f32 = false;
  bool accumulate = false;  // adds to out
  bool stream = false;      // writes out, of f32, past the caches; its rows start at cache lines
  // At most one of these, for out's type; they take pieces of rows.
  ProductKernels::Gelu gelu = nullptr;
  ProductKernels::GeluGradient gelu_gradient = nullptr;
  const void* a = nullptr;
  const void* panels = nullptr;
  const void* bias = nullptr;  // null: none
  void* out = nullptr;
  void* aux = nullptr;
};

struct TileKernels {
  // Six tiles sum a block of this height and width; a panel of b has its columns.
  static constexpr std::int64_t height = 32, width = 48;
  static constexpr std::int64_t block = height * width;
  static constexpr std::int64_t depth = 32;  // k of one tile product
  // Rows [begin, end) and panels [first, last) of out. `packed` has block_rows x chunk bf16. `sums` has two blocks of
  // f32; if k takes more than one chunk, one for every `height` of block_rows and every panel. Both are cache-aligned.
  void (*multiply)(const TileProduct&, std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last,
                   void* packed, float* sums);
  // Rows [begin, end) of b (k, n) of bf16 into panels; both are multiples of depth, except the last, padded_k.
  void (*pack)(const TileProduct&, const void* b, void* panels, std::int64_t begin, std::int64_t end);
};

}  // namespace assay::ops
