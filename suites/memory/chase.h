// Pointer chasing: each load depends on the previous one, so that their time is the memory's latency.
#pragma once

#include "harness/core/rng.h"

#include <cstddef>
#include <cstdint>

namespace assay::memory {

// One cache line: the target of the next hop, and this line's position in the cycle.
struct alignas(64) Line {
  const Line* next;
  std::uint64_t place;
};

// Links `count` lines into one cycle in random order (a Fisher-Yates shuffle), starting at lines[0]. Takes one more
// word of memory per line meanwhile.
void link_cycle(Line* lines, std::size_t count, const Rng& rng);

// Follows the cycle for `hops` loads and returns the line reached.
const Line* chase(const Line* from, std::uint64_t hops);

// The number of lines that a walk from lines[0] does not visit in order, once each.
std::uint64_t wrong_lines(const Line* lines, std::size_t count);

}  // namespace assay::memory
