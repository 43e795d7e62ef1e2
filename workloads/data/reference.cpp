#include "workloads/data/reference.h"

#include "workloads/data/jpeg_decoder.h"

#include <algorithm>
#include <cmath>

namespace assay::data {

ReferenceImage reference_decode(std::span<const std::byte> jpeg, std::string& error) {
  ReferenceImage image;
  JpegDecoder decoder;
  if (!decoder.open(jpeg) || !decoder.start({0, 0, decoder.width(), decoder.height()})) {
    error = decoder.error();
    return image;
  }
  image.width = decoder.width();
  image.height = decoder.height();
  std::vector<std::uint8_t> row(static_cast<std::size_t>(image.width) * 4 + 64);
  std::uint8_t* rows[1] = {row.data()};
  image.pixels.reserve(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3);
  for (int y = 0; y < image.height; ++y) {
    if (!decoder.read(rows, 1)) {
      error = decoder.error();
      return {};
    }
    for (int x = 0; x < image.width; ++x)
      image.pixels.insert(image.pixels.end(), row.begin() + x * 4, row.begin() + x * 4 + 3);
  }
  return image;
}

std::vector<double> reference_resize(const ReferenceImage& image, const Augmentation& augmentation, int size) {
  const Crop& crop = augmentation.crop;
  const double scale_x = static_cast<double>(crop.width) / size, scale_y = static_cast<double>(crop.height) / size;
  const double reach_x = std::max(scale_x, 1.0), reach_y = std::max(scale_y, 1.0);
  std::vector<double> out;
  for (int y = 0; y < size; ++y)
    for (int place = 0; place < size; ++place) {
      const int x = augmentation.flip ? size - 1 - place : place;
      const double centre_x = (x + 0.5) * scale_x, centre_y = (y + 0.5) * scale_y;
      double sums[3] = {}, total = 0;
      for (int j = std::max(0, static_cast<int>(centre_y - reach_y) - 1);
           j < std::min<double>(crop.height, centre_y + reach_y + 1); ++j)
        for (int i = std::max(0, static_cast<int>(centre_x - reach_x) - 1);
             i < std::min<double>(crop.width, centre_x + reach_x + 1); ++i) {
          const double weight = std::max(0.0, 1 - std::abs(i + 0.5 - centre_x) / reach_x) *
                                std::max(0.0, 1 - std::abs(j + 0.5 - centre_y) / reach_y);
          if (weight == 0) continue;
          const std::size_t at = (static_cast<std::size_t>(crop.y + j) * static_cast<std::size_t>(image.width) +
                                  static_cast<std::size_t>(crop.x + i)) *
                                 3;
          for (std::size_t channel = 0; channel < 3; ++channel) sums[channel] += weight * image.pixels[at + channel];
          total += weight;
        }
      for (const double sum : sums) out.push_back(sum / total);
    }
  return out;
}

}  // namespace assay::data
