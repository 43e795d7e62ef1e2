// The collective calls that the ranks of a layout make in a training step.
#pragma once

#include "workloads/parallel/shards.h"

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
  std::int64_t elements = 0;       // of the whole array, of which each rank scatters or gathers its slice
  std::int64_t element_bytes = 4;  // gradients or weights
  std::int64_t count = 1;          // calls in a step

  std::int64_t bytes() const { return elements * element_bytes; }
  bool operator==(const Collective&) const = default;
};

// Of an optimizer step of `accumulate` micro-batches. With zero=0 the gradients of each bucket are reduced once. With
// zero=1 each block's gradients are scattered and its weights gathered once; zero >= 2 scatters the gradients of every
// micro-batch, and zero=3 gathers the weights before its forward and before its backward pass.
// `buckets`, `blocks`: elements of each; a block is padded so that its slices are equally long (slice_of).
std::vector<Collective> collectives_of(std::span<const std::int64_t> buckets, std::span<const std::int64_t> blocks,
                                       const StateTypes& types, const Layout& layout, std::int64_t accumulate);

// Calls of a kind whose sizes differ by at most a tenth, as that many calls of their mean size; by kind and size.
std::vector<Collective> grouped(std::vector<Collective> collectives);

}  // namespace assay::parallel
