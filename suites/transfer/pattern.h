// The data transferred: pseudo-random words, so that a misplaced or missing one is noticed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::transfer {

// Word i of a buffer (murmur3's finaliser); bytes after the last whole word are the first bytes of the next.
constexpr std::uint32_t word(std::size_t i) {
  auto x = static_cast<std::uint32_t>(i) + 0x9e3779b9u * static_cast<std::uint32_t>((i >> 32) + 1);
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}
constexpr std::uint8_t byte(std::size_t i) { return static_cast<std::uint8_t>(word(i / 4) >> (8 * (i % 4))); }

// The number of wrong bytes, and the positions of some.
struct Wrong {
  static constexpr std::size_t kept = 20;
  std::uint64_t count = 0;
  std::uint64_t place[kept] = {};
};

}  // namespace assay::transfer
