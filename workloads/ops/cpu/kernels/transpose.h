// Transposes matrices of 32-bit units in registers.
#pragma once

#include "harness/device/cpu/vector/vector.h"

#include <utility>

namespace assay::vector {
namespace {

// Rows a and b, `width` apart, exchange halves: a keeps its lower ones, b its upper ones.
template <int width, bool upper, typename V, int... l>
inline V exchanged(V a, V b, std::integer_sequence<int, l...>) {
  if constexpr (upper) return __builtin_shufflevector(a, b, ((l & width) == 0 ? l + width : lanes + l)...);
  return __builtin_shufflevector(a, b, ((l & width) == 0 ? l : lanes + l - width)...);
}

// Transposes a lanes x lanes matrix of 32-bit units in registers.
template <typename V, int width>
inline void exchange(V (&rows)[lanes]) {
  constexpr std::make_integer_sequence<int, lanes> all;
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    if ((i & width) != 0) continue;
    const V lower = exchanged<width, false>(rows[i], rows[i + width], all);
    rows[i + width] = exchanged<width, true>(rows[i], rows[i + width], all);
    rows[i] = lower;
  }
  if constexpr (width > 1) exchange<V, width / 2>(rows);
}

// to (columns, to_row) = from (rows, from_row) transposed; rows and columns are multiples of lanes.
template <typename Unit>
inline void transpose(const Unit* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns, Unit* to,
                      std::int64_t to_row) {
  for (std::int64_t r = 0; r < rows; r += lanes)
    for (std::int64_t d = 0; d < columns; d += lanes) {
      Float block[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) __builtin_memcpy(&block[i], from + (r + i) * from_row + d, sizeof(Float));
      exchange<Float, lanes / 2>(block);
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) __builtin_memcpy(to + (d + i) * to_row + r, &block[i], sizeof(Float));
    }
}

}  // namespace
}  // namespace assay::vector
