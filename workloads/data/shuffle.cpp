#include "workloads/data/shuffle.h"

#include "harness/core/rng.h"
#include "workloads/data/mix.h"

#include <bit>

namespace assay::data {

Shuffle::Shuffle(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size)
    : size_(size),
      key_(Rng(seed, "shuffle").u64(epoch)),
      half_bits_(size > 1 ? (static_cast<int>(std::bit_width(size - 1)) + 1) / 2 : 1) {}

std::uint64_t Shuffle::at(std::uint64_t place) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = place >> half_bits_, right = place & mask;
    for (std::uint64_t round = 1; round <= 6; ++round) {
      const std::uint64_t next = left ^ (mix(key_ + round * mix_step + right) & mask);
      left = right;
      right = next;
    }
    place = left << half_bits_ | right;
  } while (place >= size_);
  return place;
}

}  // namespace assay::data
