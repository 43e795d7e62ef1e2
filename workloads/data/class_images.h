// Images of known accuracy ceiling: each class is a smooth random field, shown cropped, flipped and under noise.
#pragma once

#include "workloads/data/training_stream.h"

#include <optional>

namespace assay::data {

struct ClassImagesSpec {
  int classes = 10;
  int size = 32;                   // pixels a side, S
  int label_noise = 100;           // of 1,000 labels that name another class
  std::int64_t validation = 2000;  // images
  std::uint64_t seed = 0;          // of the classes and of the validation set
};

// What the best classifier reaches.
struct ImageCeiling {
  double accuracy = 0;  // of one that always names the true class, on the very validation set
  double expected = 0;  // the same over all images: 1 - label noise
  // Bound on the share of images whose class the noise can hide from the nearest-field classifier, from the distances
  // of the classes; nothing where there are too many classes or pixels to look at all pairs.
  std::optional<double> confusion;
  double loss = 0;  // expected cross-entropy of one that knows the true class and the label noise, in nats
};

class ClassImages : public TrainingSet {
 public:
  virtual const ClassImagesSpec& spec() const = 0;
  virtual const ImageCeiling& ceiling() const = 0;  // computed at the first call
  // SHA-256 of the first images and labels of both splits.
  virtual std::string sha256() const = 0;
};

// sha256() of the default images, and of 1,000 classes at 224 pixels with one image for validation.
inline constexpr const char* published_class_images_sha256 =
    "c07a214eb53a655504735fb544fa3254571440be4ac5da7be9ed2e791e396ecd";
inline constexpr const char* published_large_class_images_sha256 =
    "ed1b6ca117ca6047f4c41f2602c5b6b1fefa79dbce4754b397630547e404be6c";

// Throws UsageError for fewer than 2 classes or 4 pixels a side.
std::shared_ptr<const ClassImages> make_class_images(const ClassImagesSpec& spec);

}  // namespace assay::data
