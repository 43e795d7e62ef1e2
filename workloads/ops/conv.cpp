// Validation of convolutions.
#include "workloads/ops/conv.h"

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/descriptors.h"

#include <algorithm>

namespace assay::ops {

std::optional<std::string> problem_of(const ConvDesc& d) {
  if (auto problem =
          problem_of_sizes({{"n", d.n}, {"h", d.h}, {"w", d.w}, {"c", d.c}, {"k", d.k}, {"r", d.r}, {"s", d.s}}))
    return problem;
  if (d.stride < 1) return fmt::format("stride must be at least 1, not {}", d.stride);
  if (d.padding < 0) return fmt::format("padding must be at least 0, not {}", d.padding);
  if (d.groups < 1) return fmt::format("groups must be at least 1, not {}", d.groups);
  if (d.c % d.groups != 0) return fmt::format("{} groups do not divide {} input channels", d.groups, d.c);
  if (d.k % d.groups != 0) return fmt::format("{} groups do not divide {} output channels", d.groups, d.k);
  if (d.r > d.h + 2 * d.padding || d.s > d.w + 2 * d.padding)
    return fmt::format("a window of {} x {} does not fit an image of {} x {} with padding {}", d.r, d.s, d.h, d.w,
                       d.padding);
  if (auto problem = problem_of_types({storage_type(d.dtype), d.pack_from, d.gradient})) return problem;
  return std::nullopt;
}

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
