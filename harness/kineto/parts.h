// How the time of steps divides among what ran in it.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace assay::kineto {

// From `start` up to `end`, in ns.
struct Range {
  std::int64_t start = 0, end = 0;
};
using Ranges = std::deque<Range>;  // grows without a copy

// Sorts, and joins what touches or overlaps.
void unite(Ranges& ranges);

// Of each window the time in which each layer is the first that covers it: what several layers cover counts for the
// first of them. The windows are in order and do not overlap; the layers are united. The rest of a window is of none.
std::vector<std::vector<std::int64_t>> divide(std::span<const Range> windows, std::span<const Ranges* const> layers);

// The phases in which `parts` follow each other without one of `others` beginning between two of them. Both are united.
Ranges phases(const Ranges& parts, const Ranges& others);

}  // namespace assay::kineto
