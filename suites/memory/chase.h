// Pointer chasing: loads that depend on each other, so that their time is the latency of the memory below.
#pragma once

#include "harness/core/rng.h"

#include <cstddef>
#include <cstdint>

namespace assay::memory {

// One cache line: where the next hop goes, and this line's place in the cycle.
struct alignas(64) Line {
  const Line* next;
  std::uint64_t place;
};

// Links `count` lines into one cycle in random order (Sattolo's algorithm), lines[0] having place 0.
void link_cycle(Line* lines, std::size_t count, const Rng& rng);

// Follows the cycle for `hops` loads and returns where it ends.
const Line* chase(const Line* from, std::uint64_t hops);

// Lines that the cycle does not visit in order, each once, starting at lines[0].
std::uint64_t wrong_lines(const Line* lines, std::size_t count);

}  // namespace assay::memory
