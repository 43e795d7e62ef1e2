// How an array is divided between ranks.
#pragma once

#include <cstdint>

namespace assay::parallel {

// Slices start on cache lines.
inline constexpr std::int64_t slice_alignment = 16;  // 4-byte elements

// Elements of one rank's slice if `elements` are divided between dp ranks: all slices are equally long, so that a
// reduce-scatter and an all-gather work in place; the last ends in padding.
std::int64_t slice_of(std::int64_t elements, std::int64_t dp);

}  // namespace assay::parallel
