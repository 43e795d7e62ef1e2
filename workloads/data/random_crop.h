// Random-resized-crop: draws the part of an image that a sample shows, as torchvision does.
#pragma once

#include "harness/core/rng.h"

#include <cstdint>

namespace assay::data {

// A rectangle of an image, in pixels.
struct Crop {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  bool operator==(const Crop&) const = default;
};

struct CropRange {
  double min_area = 0.08;  // fraction of the image
  double max_area = 1.0;
  double min_aspect = 3.0 / 4.0;
  double max_aspect = 4.0 / 3.0;
};

// The augmentation of one sample.
struct Augmentation {
  Crop crop;
  bool flip = false;
};

// Draws the crop and flip of sample `index` (its position in the whole stream over all epochs) for an image of
// width x height. Area is uniform, aspect log-uniform; after ten attempts, the largest centred crop of a legal aspect.
// Szegedy et al., "Going deeper with convolutions", CVPR 2015; fallback as in torchvision.
Augmentation draw_augmentation(const Rng& rng, std::uint64_t index, int width, int height, const CropRange& = {});

}  // namespace assay::data
