// The vertical pass comes first: it accesses memory sequentially and leaves only `size` rows for the horizontal one.
#include "workloads/data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace assay::data {

void TriangleFilter::prepare(double origin, double length, int inputs) {
  const double scale = length / outputs();
  const double reach = std::max(scale, 1.0);
  stride_ = static_cast<int>(std::ceil(reach)) * 2 + 1;
  weights_.reserve(first_.size() * static_cast<std::size_t>(stride_) * sizeof(float));
  const int low_limit = std::max(0, static_cast<int>(std::floor(origin)));
  const int high_limit = std::min(inputs, static_cast<int>(std::ceil(origin + length)));
  max_taps_ = 0;
  for (int o = 0; o < outputs(); ++o) {
    const double centre = origin + (o + 0.5) * scale;
    int low = std::clamp(static_cast<int>(std::floor(centre - reach + 0.5)), low_limit, high_limit - 1);
    const int high = std::clamp(static_cast<int>(std::floor(centre + reach + 0.5)), low + 1, high_limit);
    float* w = weights_.as<float>() + o * stride_;
    double sum = 0;
    int count = 0;
    for (int i = low; i < high; ++i) {
      const double weight = 1.0 - std::abs(i + 0.5 - centre) / reach;
      if (weight <= 0 && count == 0 && i + 1 < high) {
        ++low;
        continue;
      }
      w[count++] = static_cast<float>(std::max(weight, 0.0));
      sum += std::max(weight, 0.0);
    }
    while (count > 1 && w[count - 1] <= 0) --count;
    for (int i = 0; i < count; ++i) w[i] = sum > 0 ? static_cast<float>(w[i] / sum) : 1.0f / static_cast<float>(count);
    first_[static_cast<std::size_t>(o)] = low;
    taps_[static_cast<std::size_t>(o)] = count;
    max_taps_ = std::max(max_taps_, count);
  }
}

CropResizer::CropResizer(int size, const ResizeKernels& kernels, const Normalization& normalization)
    : size_(size), kernels_(kernels), vertical_(size), horizontal_(size), first_pixel_(static_cast<std::size_t>(size)) {
  for (std::size_t channel = 0; channel < 3; ++channel) {
    scale_[channel] = 1.0f / (255.0f * normalization.deviation[channel]);
    bias_[channel] = -normalization.mean[channel] / normalization.deviation[channel];
  }
  wide_.reserve(static_cast<std::size_t>(size) * 3 * sizeof(float));
}

void CropResizer::prepare(const Box& box, int row_pixels, int rows, bool flip) {
  vertical_.prepare(box.y, box.height, rows);
  horizontal_.prepare(box.x, box.width, row_pixels);
  padded_taps_ = (horizontal_.max_taps() + 3) / 4 * 4;
  row_values_ = row_pixels * 4;
  // Taps past the end of the row have weight zero, but what they read must be finite.
  const std::size_t blended_bytes = static_cast<std::size_t>(row_values_ + padded_taps_ * 4 + 128) * sizeof(float);
  blended_.reserve(blended_bytes);
  std::memset(blended_.data() + static_cast<std::size_t>(row_values_) * sizeof(float), 0,
              blended_bytes - static_cast<std::size_t>(row_values_) * sizeof(float));
  spread_.reserve(static_cast<std::size_t>(size_) * static_cast<std::size_t>(padded_taps_) * 4 * sizeof(float));
  float* out = spread_.as<float>();
  for (int position = 0; position < size_; ++position) {
    const int o = flip ? size_ - 1 - position : position;
    first_pixel_[static_cast<std::size_t>(position)] = horizontal_.first(o);
    const float* w = horizontal_.weights(o);
    const int taps = horizontal_.taps(o);
    for (int tap = 0; tap < padded_taps_; ++tap, out += 4) std::fill_n(out, 4, tap < taps ? w[tap] : 0.0f);
  }
}

void CropResizer::output(int y, const std::uint8_t* const* sources, float* out) {
  float* blended = blended_.as<float>();
  kernels_.vertical(sources, vertical_.weights(y), vertical_.taps(y), row_values_, blended);
  kernels_.horizontal(blended, first_pixel_.data(), spread_.as<float>(), padded_taps_, size_, scale_, bias_, out);
}

void CropResizer::output(int y, const std::uint8_t* const* sources, std::uint16_t* out_bf16) {
  output(y, sources, wide_.as<float>());
  kernels_.to_bf16(wide_.as<float>(), out_bf16, size_ * 3);
}

}  // namespace assay::data
