// The collective calls that the ranks of a layout make in a training step.
#pragma once

#include "harness/core/dtype.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay::parallel {

enum class CollectiveKind { all_reduce, reduce_scatter, all_gather };
constexpr auto words(CollectiveKind) {
  return std::to_array<std::string_view>({"all_reduce", "reduce_scatter", "all_gather"});
}

struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t elements = 0;  // elements of the whole array, of which each rank scatters or gathers a slice
  DType dtype = DType::f32;   // type of the gradients or weights
  std::int64_t count = 1;     // calls in a step

  std::int64_t bytes() const { return elements * static_cast<std::int64_t>(size_of(dtype)); }
  bool operator==(const Collective&) const = default;
};

// Bytes of gradients and of weights that the calls move, as papers count: an all-reduce moves its array twice, a
// reduce-scatter and an all-gather once.
struct Moved {
  std::uint64_t gradients = 0;
  std::uint64_t weights = 0;
};
Moved moved_by(std::span<const Collective> collectives);

// Calls of a kind whose sizes differ by at most a tenth, as that many calls of their mean size; by kind and size.
std::vector<Collective> grouped(std::vector<Collective> collectives);

}  // namespace assay::parallel
