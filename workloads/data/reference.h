// A plain implementation as the oracle for the fast one: decode everything, then crop, then filter in double.
#pragma once

#include "workloads/data/random_crop.h"
#include "workloads/data/resize.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace assay::data {

struct ReferenceImage {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;  // (height, width, 3)
};

// Decodes the whole image. On failure the pixels are empty and `error` has the reason.
ReferenceImage reference_decode(std::span<const std::byte> jpeg, std::string& error);

// The crop as levels in [0, 255], (size, size, 3): the triangle filter of Pillow's and torchvision's antialiased
// bilinear, both axes at once, then the flip.
std::vector<double> reference_resize(const ReferenceImage& image, const Augmentation& augmentation, int size);

}  // namespace assay::data
