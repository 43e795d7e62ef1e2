// Which convolutions the cpu backend computes by Winograd's F(2x2, 3x3), for the backend and for plans of its memory.
#pragma once

#include "workloads/ops/conv.h"

namespace assay::ops {

// F(2x2, 3x3) of Lavin & Gray 2016, "Fast algorithms for convolutional neural networks": a tile of 4 x 4 inputs gives
// 2 x 2 outputs with 16 products per channel pair instead of 36; transformed weights have 16 elements instead of 9.
inline constexpr std::int64_t winograd_positions = 16;
inline constexpr std::int64_t channel_block = 16;  // lanes of the largest vectors

// Whether the op supports the descriptor and is faster than oneDNN's on this CPU, by a fixed rule.
bool winograd_suits(const ConvDesc& desc);

}  // namespace assay::ops
