// Turns lifetimes into offsets: places the tensors of a program in one arena.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::nn {

// An array, alive during instructions [first, last], which must not overlap another while both live.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  // one for each lifetime, aligned
  std::size_t bytes = 0;             // size of the arena
  std::size_t live = 0;              // maximum bytes alive at once: no plan can be smaller
  std::size_t peak_at = 0;           // the instruction at which they are
};

// Greedy best fit: each array goes to the smallest gap between placed arrays that live at the same time, largest
// first (Pisarchyk & Lee 2020, "Efficient memory management for deep neural net inference"). Tries a few other orders
// too and keeps the best.
ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::size_t alignment = 64);

}  // namespace assay::nn
