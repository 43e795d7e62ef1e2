#include "workloads/ops/winograd.h"

#include "harness/device/cpu/kernels.h"

#include <algorithm>

namespace assay::ops {

namespace {

constexpr std::int64_t tile = 2;  // outputs in each direction

std::int64_t tiles(std::int64_t images, std::int64_t height, std::int64_t width) {
  return images * ((height + tile - 1) / tile) * ((width + tile - 1) / tile);
}

}  // namespace

bool winograd_suits(const ConvDesc& d) {
  const bool f32 = d.dtype == DType::f32 && d.pack_from == DType::f32 && d.gradient == DType::f32;
  if (!f32 || d.r != 3 || d.s != 3 || d.stride != 1 || d.groups != 1 || d.padding > 2) return false;
  if (d.c % channel_block != 0 || d.k % channel_block != 0 || std::min(d.c, d.k) < 64) return false;
  if (cpu::best_isa() == cpu::Isa::generic) return false;
  // Tiles that cross the edge of the images, or of their gradients, must not cancel the gain.
  const std::int64_t products = winograd_positions * std::max(tiles(d.n, d.p(), d.q()), tiles(d.n, d.h, d.w));
  return 3 * products <= 2 * 9 * d.n * d.p() * d.q();
}

}  // namespace assay::ops
