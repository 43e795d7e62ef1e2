// A hash that is cheap enough to use per pixel, for counter-based random numbers.
#pragma once

#include <cstdint>

namespace assay::data {

// SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014).
inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The increment of SplitMix64's state.
inline constexpr std::uint64_t mix_step = 0x9e3779b97f4a7c15u;

}  // namespace assay::data
