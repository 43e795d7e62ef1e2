// The positions of parameters in the flat buffers of masters, gradients and moments, the buckets in which gradients are
// reduced, and what of them each rank holds.
#pragma once

#include "workloads/nn/model.h"
#include "workloads/parallel/layout.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay::nn {

// The arrays that have an element for each element of a parameter. Copies are masters in the type that layers read.
enum class Array : std::uint8_t { masters, copies, gradients, moments };
inline constexpr std::size_t array_kinds = 4;

// Flat elements [begin, end), from position `at` of a rank's array on.
struct Held {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t at = 0;

  std::int64_t count() const { return end - begin; }
  bool operator==(const Held&) const = default;
};

// Gradient elements [begin, end), complete once `ready` instructions of a micro-batch have run.
struct Bucket {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t ready = 0;
  std::int64_t slice = 0;  // elements that each rank updates: all, unless ranks divide them
  bool decay = true;       // weights are subject to decay
  std::array<Held, array_kinds> held = {};

  const Held& in(Array array) const { return held[static_cast<std::size_t>(array)]; }
  Held& in(Array array) { return held[static_cast<std::size_t>(array)]; }
  bool divided() const { return slice < end - begin; }
  // Whether the rank holds all of it.
  bool whole(Array array) const { return in(array).count() == end - begin; }
  // The part that a rank updates.
  std::int64_t own(int rank) const { return divided() ? begin + rank * slice : begin; }
};

// Elements [first, first + count) of a parameter.
struct Range {
  std::size_t parameter = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

struct ParameterLayout {
  std::vector<std::int64_t> begin;  // where each parameter begins, in elements; gaps between parameters are not used
  std::vector<std::size_t> bucket;  // index of each parameter's bucket
  std::int64_t decayed = 0;         // elements [0, decayed) are subject to weight decay, the others are not
  std::int64_t count = 0;           // elements in all
  std::vector<Bucket> buckets;      // in the order in which they become ready
  std::array<std::int64_t, array_kinds> elements = {};  // elements of a rank's arrays

  const Bucket& bucket_of(std::size_t parameter) const { return buckets[bucket[parameter]]; }
  std::int64_t size(Array array) const { return elements[static_cast<std::size_t>(array)]; }
  // The range of a parameter with `length` elements that is in the rank's array; it may be empty.
  Range held(Array array, std::size_t parameter, std::int64_t length) const;
  // The position in the rank's array of a parameter's element `first`.
  std::int64_t position(Array array, std::size_t parameter, std::int64_t first = 0) const {
    const Held& there = bucket_of(parameter).in(array);
    return there.at + begin[parameter] + first - there.begin;
  }
};

// How flat buffers are cut.
struct Cut {
  std::int64_t bucket_elements = 0;  // a bucket's minimum, if that many are left; with zero > 0 buckets are blocks
  parallel::Layout layout = {};
};

// `ready`: for each parameter, one past the last instruction that adds to its gradient. Each half of the buffer holds
// parameters in that order, so that buckets are slices; each parameter starts on a cache line. With zero > 0 the
// decayed parameters of each block of the model are a bucket and all others another, and the ranks' slices of a bucket
// are equally long. `room` (empty, or one per parameter): the minimum gap after the parameter. Every rank holds
// everything.
ParameterLayout lay_out(std::span<const ParameterSpec> specs, std::span<const std::size_t> ready, const Cut& cut,
                        std::span<const std::int64_t> room = {});

// Which arrays of a bucket the layers of a rank read.
struct ReadWhole {
  bool masters = true;
  bool copies = true;
};
// Sets what `rank` holds of each bucket if `layout` divides the buckets; `read` has one entry per bucket.
void divide(ParameterLayout& parameters, const parallel::Layout& layout, int rank, std::span<const ReadWhole> read);

// Every parameter, in the order of the specs, cut where slices of `ranks` end, and whose slice each part is in.
struct RankRange : Range {
  int rank = 0;
};
std::vector<RankRange> ranges_by_rank(const ParameterLayout& parameters, std::span<const ParameterSpec> specs,
                                      std::int64_t ranks);

// A parameter's block of the model: "block.3" of "block.3.norm1.weight", "head" of "head.weight".
std::string_view block_of(std::string_view name);

}  // namespace assay::nn
