// The order of an epoch: a permutation that needs no memory and can be evaluated at any place.
#pragma once

#include <cstdint>

namespace assay::data {

// A Feistel network over the smallest even number of bits that holds `size`, iterated until the result is below `size`
// (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). A pure function of seed, epoch, size and
// place.
class Shuffle {
 public:
  Shuffle(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size);
  // The element at `place` in [0, size).
  std::uint64_t at(std::uint64_t place) const;

 private:
  std::uint64_t size_;
  std::uint64_t key_;
  int half_bits_;
};

}  // namespace assay::data
