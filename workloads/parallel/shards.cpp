#include "workloads/parallel/shards.h"

#include <algorithm>

namespace assay::parallel {

namespace {

std::int64_t divided(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace

std::int64_t slice_of(std::int64_t elements, std::int64_t dp) {
  return divided(divided(elements, dp), slice_alignment) * slice_alignment;
}

StateBytes state_bytes(std::span<const std::int64_t> blocks, const StateTypes& types, const Layout& layout) {
  const std::int64_t dp = layout.zero > 0 ? layout.dp : 1;
  std::int64_t slices = 0, largest_pair = 0, previous = 0;
  for (const std::int64_t block : blocks) {
    const std::int64_t slice = slice_of(block, dp);
    slices += slice;
    largest_pair = std::max(largest_pair, (previous + slice) * dp);
    previous = slice;
  }
  const std::int64_t all = slices * dp;
  // Without a copy for the layers, the masters are what they read.
  const bool copied = types.parameter != types.master;
  const auto bytes = [](std::int64_t elements, std::int64_t each) {
    return static_cast<std::uint64_t>(elements) * static_cast<std::uint64_t>(each);
  };
  StateBytes state;
  state.weights = bytes(layout.zero > 2 ? slices : all, types.parameter);
  if (copied) state.weights += bytes(slices, types.master);
  state.gradients = bytes(layout.zero > 1 ? slices : all, types.gradient);
  state.optimizer = bytes(slices, types.moments * types.master);
  if (layout.zero > 1) state.communication += bytes(largest_pair, types.gradient);
  if (layout.zero > 2) state.communication += bytes(largest_pair, types.parameter);
  return state;
}

}  // namespace assay::parallel
