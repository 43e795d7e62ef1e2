// Products of small f32 blocks that lie in the first caches, for kernels that are bound by arithmetic.
#pragma once

#include "harness/device/cpu/vector/vector.h"

namespace assay::vector {
namespace {

// Columns of a tile, in vectors: with `tile_rows` rows the sums fill about half of the registers.
constexpr int tile_rows = 4;
constexpr int tile_vectors = lanes == 16 ? 4 : 2;

// a (m, k): element (i, p) at a[i * row + p * step].
struct Left {
  const float* data;
  std::int64_t row, step;
};

template <int vectors, bool add>
inline void tile(std::int64_t k, Left a, const float* b, std::int64_t b_row, float* c, std::int64_t c_row) {
  Float sum[tile_rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) sum[i][j] = add ? load(c + i * c_row + j * lanes) : Float{};
  for (std::int64_t p = 0; p < k; ++p) {
    Float right[vectors];
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) right[j] = load(b + p * b_row + j * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < tile_rows; ++i) {
      const Float left = splat(a.data[i * a.row + p * a.step]);
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) sum[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) store(c + i * c_row + j * lanes, sum[i][j]);
}

// c (m, n) = a (m, k) b (k, n), or c + a b; m a multiple of tile_rows, n of lanes.
template <bool add>
inline void product(std::int64_t m, std::int64_t n, std::int64_t k, Left a, const float* b, std::int64_t b_row,
                    float* c, std::int64_t c_row) {
  std::int64_t j = 0;
  for (; j + tile_vectors * lanes <= n; j += tile_vectors * lanes)
    for (std::int64_t i = 0; i < m; i += tile_rows)
      tile<tile_vectors, add>(k, {a.data + i * a.row, a.row, a.step}, b + j, b_row, c + i * c_row + j, c_row);
  for (; j < n; j += lanes)
    for (std::int64_t i = 0; i < m; i += tile_rows)
      tile<1, add>(k, {a.data + i * a.row, a.row, a.step}, b + j, b_row, c + i * c_row + j, c_row);
}

}  // namespace
}  // namespace assay::vector
