// The bytes of weights, gradients and optimizer state on a rank.
#pragma once

#include "workloads/parallel/layout.h"

#include <cstdint>
#include <span>

namespace assay::parallel {

// Slices start on cache lines.
inline constexpr std::int64_t slice_alignment = 16;  // 4-byte elements

// Elements of one rank's slice if `elements` are divided between dp ranks: all slices are equally long, so that a
// reduce-scatter and an all-gather work in place; the last ends in padding.
std::int64_t slice_of(std::int64_t elements, std::int64_t dp);

// Bytes of an element.
struct StateTypes {
  std::int64_t parameter = 4;  // of the weights that layers read
  std::int64_t gradient = 4;
  std::int64_t master = 4;  // of the weights and moments that the optimizer updates
  int moments = 2;          // 2 for AdamW
};

struct StateBytes {
  std::uint64_t weights = 0;  // masters, too
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;
  // What zero >= 2 needs beside its slices for as long as a block is computed: the gradients of two blocks, one that is
  // computed and one that is reduced; with zero = 3 also the weights of two, one that is used and the next.
  std::uint64_t communication = 0;
};

// `blocks`: elements of each block of the model, in order; each is divided by itself, so that a block can be gathered
// alone. With AdamW in f32, bytes per parameter without padding for zero 0 to 3 on d ranks are 16, 8 + 8/d, 4 + 12/d,
// 16/d; with a 16-bit copy of the weights 18, 6 + 12/d, 2 + 16/d, 18/d.
StateBytes state_bytes(std::span<const std::int64_t> blocks, const StateTypes& types, const Layout& layout);

}  // namespace assay::parallel
