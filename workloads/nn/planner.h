// Lifetimes to offsets: where the tensors of a program lie in one arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::nn {

// An array that must not overlap another while both live. Instructions [first, last], both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  // of each lifetime, aligned
  std::size_t bytes = 0;             // of the arena
  std::size_t live = 0;              // the most bytes that live at once: no plan can be smaller
  std::size_t peak_at = 0;           // the instruction at which they do
};

// Greedy: each array goes to the best gap among those placed before it that live at the same time, the largest first
// (Pisarchyk & Lee 2020, "Efficient memory management for deep neural net inference"); of a few orders the best.
ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::size_t alignment = 64);

}  // namespace assay::nn
