// Counter-based random numbers: f(seed, purpose, index), the same on any thread, rank or platform.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace assay {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// A stream of numbers for one purpose; every call is a pure function of (seed, purpose, index).
class Rng {
 public:
  Rng(std::uint64_t seed, std::string_view purpose);

  std::uint64_t u64(std::uint64_t index) const;
  // Uniform in [0, 1), 53 bits.
  double uniform(std::uint64_t index) const;
  // Uniform in [0, bound) without modulo bias beyond 2^-32; bound >= 1.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;
  // Standard normal by Box-Muller; uses libm, so equal across platforms only up to rounding.
  double normal(std::uint64_t index) const;

  // The key with which generators on other devices make the same numbers: block i is philox({i low, i high, purpose
  // low, purpose high}, key).
  std::array<std::uint32_t, 2> key() const { return key_; }
  std::uint64_t purpose() const { return purpose_; }

 private:
  std::array<std::uint32_t, 4> block(std::uint64_t index) const;

  std::array<std::uint32_t, 2> key_;
  std::uint64_t purpose_;
};

}  // namespace assay
