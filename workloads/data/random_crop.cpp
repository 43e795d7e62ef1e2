#include "workloads/data/random_crop.h"

#include <algorithm>
#include <cmath>

namespace assay::data {

namespace {

constexpr std::uint64_t draws_per_sample = 64;  // 4 per attempt, and the flip

Crop centred(int width, int height, const CropRange& range) {
  const double aspect = static_cast<double>(width) / height;
  Crop crop{0, 0, width, height};
  if (aspect < range.min_aspect)
    crop.height = std::min(height, static_cast<int>(std::lround(width / range.min_aspect)));
  if (aspect > range.max_aspect) crop.width = std::min(width, static_cast<int>(std::lround(height * range.max_aspect)));
  crop.width = std::max(crop.width, 1);
  crop.height = std::max(crop.height, 1);
  crop.x = (width - crop.width) / 2;
  crop.y = (height - crop.height) / 2;
  return crop;
}

}  // namespace

Augmentation draw_augmentation(const Rng& rng, std::uint64_t index, int width, int height, const CropRange& range) {
  const std::uint64_t base = index * draws_per_sample;
  Augmentation result;
  result.flip = (rng.u64(base + draws_per_sample - 1) >> 63) != 0;
  const double area = static_cast<double>(width) * height;
  const double log_low = std::log(range.min_aspect);
  const double log_high = std::log(range.max_aspect);
  for (std::uint64_t attempt = 0; attempt < 10; ++attempt) {
    const std::uint64_t draw = base + attempt * 4;
    const double target = area * (range.min_area + (range.max_area - range.min_area) * rng.uniform(draw));
    const double aspect = std::exp(log_low + (log_high - log_low) * rng.uniform(draw + 1));
    const auto w = std::lround(std::sqrt(target * aspect));
    const auto h = std::lround(std::sqrt(target / aspect));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    result.crop.width = static_cast<int>(w);
    result.crop.height = static_cast<int>(h);
    result.crop.x = static_cast<int>(rng.below(draw + 2, static_cast<std::uint64_t>(width - w) + 1));
    result.crop.y = static_cast<int>(rng.below(draw + 3, static_cast<std::uint64_t>(height - h) + 1));
    return result;
  }
  result.crop = centred(width, height, range);
  return result;
}

}  // namespace assay::data
