// Rounding sizes up to multiples.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace assay::ops {

template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> unit) {
  return (value + unit - 1) / unit * unit;
}

// The space that an array takes in a workspace, so that the next one is aligned for every library.
constexpr std::size_t aligned_size(std::size_t bytes) { return round_up(bytes, 256); }

}  // namespace assay::ops
