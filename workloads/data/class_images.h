// Images with a known accuracy ceiling: each class is a smooth random field, cropped, flipped and covered by noise.
#pragma once

#include "workloads/data/training_stream.h"

#include <optional>

namespace assay::data {

struct ClassImagesSpec {
  int classes = 10;
  int size = 32;                   // S: height and width in pixels
  int label_noise = 100;           // wrong labels per 1,000
  std::int64_t validation = 2000;  // images
  std::uint64_t seed = 0;          // seed of the classes and of the validation set
};

// The performance of the best possible classifier.
struct ImageCeiling {
  double accuracy = 0;  // accuracy on this validation set of a model that always predicts the true class
  double expected = 0;  // the same over all images: 1 - label noise
  // Upper bound on the fraction of images that the nearest-field classifier confuses because of noise, from the
  // distances between classes; nothing if there are too many classes or pixels to compare all pairs.
  std::optional<double> confusion;
  double loss = 0;  // expected cross-entropy of a model that knows the true class and the label noise, in nats
};

class ClassImages : public TrainingSet {
 public:
  virtual const ClassImagesSpec& spec() const = 0;
  virtual const ImageCeiling& ceiling() const = 0;  // computed on the first call
  // SHA-256 of the first images and labels of both splits.
  virtual std::string sha256() const = 0;
};

// sha256() of the default images, and of 1,000 classes at 224 pixels with one validation image.
inline constexpr const char* published_class_images_sha256 =
    "c07a214eb53a655504735fb544fa3254571440be4ac5da7be9ed2e791e396ecd";
inline constexpr const char* published_large_class_images_sha256 =
    "ed1b6ca117ca6047f4c41f2602c5b6b1fefa79dbce4754b397630547e404be6c";

// Throws UsageError for fewer than 2 classes or a size below 4 pixels.
std::shared_ptr<const ClassImages> make_class_images(const ClassImagesSpec& spec);

}  // namespace assay::data
