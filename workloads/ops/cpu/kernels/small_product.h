// Products of small blocks that fit the first caches, for compute-bound kernels.
#pragma once

#include "harness/device/cpu/vector/vector.h"

#include <type_traits>

namespace assay::vector {
namespace {

// How two operands are multiplied: in units of `depth` neighbouring terms of a sum.
struct SinglePrecision {
  using Unit = float;
  static constexpr std::int64_t depth = 1;
  using Right = Float;
  static Right right(const Unit* from) { return load(from); }
  static Float add_product(Float sum, Unit left, Right right) { return sum + left * right; }
};

constexpr int tile_rows = 4;
// The sums of a tile fill half of AVX-512's 32 registers, and 12 of the 16 of others.
constexpr int tile_vectors = lanes == 16 ? 4 : 3;

// Element (i, p) of a left operand is data[i * row + p * step]; p counts units.
template <typename Unit>
struct Left {
  const Unit* data;
  std::int64_t row, step;
};

// The part of a tile to compute: terms [begin, end), in units, and the first column. The rest is zero or not needed.
struct Limits {
  std::int64_t begin, end, first_column;
};

template <typename Mode, bool add, int vectors>
inline void tile(std::int64_t begin, std::int64_t end, Left<typename Mode::Unit> a, const typename Mode::Unit* b,
                 std::int64_t b_row, float* c, std::int64_t c_row) {
  Float sum[tile_rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) sum[i][j] = add ? load(c + i * c_row + j * lanes) : Float{};
  for (std::int64_t p = begin; p < end; ++p) {
    typename Mode::Right right[vectors];
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) right[j] = Mode::right(b + p * b_row + j * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < tile_rows; ++i) {
      const typename Mode::Unit left = a.data[i * a.row + p * a.step];
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) sum[i][j] = Mode::add_product(sum[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < tile_rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) store(c + i * c_row + j * lanes, sum[i][j]);
}

// c (m, n) = or += a b; m is a multiple of tile_rows, n and first columns are multiples of lanes. limits(i) returns the
// Limits of the tile of rows that begins at i.
template <typename Mode, bool add, typename LimitsOf>
inline void product(std::int64_t m, std::int64_t n, Left<typename Mode::Unit> a, const typename Mode::Unit* b,
                    std::int64_t b_row, float* c, std::int64_t c_row, const LimitsOf& limits) {
  for (std::int64_t group = 0; group < n; group += tile_vectors * lanes) {
    const std::int64_t group_end = group + tile_vectors * lanes < n ? group + tile_vectors * lanes : n;
    for (std::int64_t i = 0; i < m; i += tile_rows) {
      const Limits l = limits(i);
      const std::int64_t j = l.first_column > group ? l.first_column : group;
      if (j >= group_end) continue;
      const Left<typename Mode::Unit> rows{a.data + i * a.row, a.row, a.step};
      float* to = c + i * c_row + j;
      const auto run = [&](auto vectors) {
        tile<Mode, add, decltype(vectors)::value>(l.begin, l.end, rows, b + j, b_row, to, c_row);
      };
      switch ((group_end - j) / lanes) {
        case 1: run(std::integral_constant<int, 1>()); break;
        case 2: run(std::integral_constant<int, 2>()); break;
        case 3: run(std::integral_constant<int, 3>()); break;
        default:
          if constexpr (tile_vectors == 4) run(std::integral_constant<int, 4>());
      }
    }
  }
}

}  // namespace
}  // namespace assay::vector
