// Generated images: published hashes, and the ceiling against an exact classifier.
#include "workloads/data/class_images.h"

#include "workloads/data/class_field.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace assay::data {
namespace {

struct Image {
  std::vector<float> pixels;
  std::int32_t label = 0;
};

class Reader {
 public:
  Reader(const ClassImages& set, Split split, std::uint64_t seed)
      : maker_(set.maker(split, seed)), values_(static_cast<std::size_t>(set.sample_bytes()) / 4) {}
  Image read(std::int64_t place) {
    Image image{std::vector<float>(values_), 0};
    std::int64_t index = 0, bytes = 0;
    maker_->make(place, {reinterpret_cast<std::byte*>(image.pixels.data()), &image.label, &index, &bytes});
    return image;
  }

 private:
  std::unique_ptr<SampleMaker> maker_;
  std::size_t values_;
};

// The class of the nearest field over all views.
int nearest(const ClassField& field, const Image& image, std::vector<std::int16_t>& clean) {
  double best = INFINITY;
  int found = -1;
  ClassField::Scratch scratch;
  for (int c = 0; c < field.classes(); ++c)
    for (int y = 0; y < field.offsets(); ++y)
      for (int x = 0; x < field.offsets(); ++x)
        for (const bool flip : {false, true}) {
          field.render(c, {x, y, flip}, scratch, clean.data());
          double distance = 0;
          for (std::size_t i = 0; i < clean.size(); ++i) {
            const double d = static_cast<double>(image.pixels[i]) - clean[i] * static_cast<double>(pixel_scale);
            distance += d * d;
          }
          if (distance < best) best = distance, found = c;
        }
  return found;
}

TEST(ClassImages, HaveThePublishedHash) {
  EXPECT_EQ(make_class_images({})->sha256(), published_class_images_sha256);
  ClassImagesSpec large;
  large.classes = 1000;
  large.size = 224;
  large.validation = 1;
  EXPECT_EQ(make_class_images(large)->sha256(), published_large_class_images_sha256);
}

TEST(ClassImages, TheExactClassifierReachesTheCeiling) {
  ClassImagesSpec spec;
  spec.classes = 5;
  spec.size = 16;
  spec.validation = 400;
  spec.label_noise = 200;
  const auto set = make_class_images(spec);
  const ClassField field(spec.classes, spec.size, spec.seed);
  std::vector<std::int16_t> clean(field.values());
  Reader validation(*set, Split::validation, 0);
  int right = 0;
  std::set<int> others;
  for (std::int64_t i = 0; i < spec.validation; ++i) {
    const Image image = validation.read(i);
    const int found = nearest(field, image, clean);
    right += found == image.label;
    if (found != image.label) others.insert(image.label);
  }
  const ImageCeiling& ceiling = set->ceiling();
  ASSERT_TRUE(ceiling.confusion);
  EXPECT_LT(*ceiling.confusion, 0.01);
  EXPECT_NEAR(right / 400.0, ceiling.accuracy, *ceiling.confusion + 1e-12);
  EXPECT_EQ(ceiling.expected, 0.8);
  EXPECT_NEAR(ceiling.accuracy, 0.8, 4 * std::sqrt(0.2 * 0.8 / 400));
  EXPECT_EQ(others.size(), 5u);
  EXPECT_NEAR(ceiling.loss, -0.8 * std::log(0.8) - 0.2 * std::log(0.05), 1e-12);
}

TEST(ClassImages, TheBoundHoldsWhereClassesAreConfused) {
  // 4 x 4 pixels with the same noise are hardly separable, and the bound shows it.
  const ClassField small(3, 4, 0);
  EXPECT_GT(confusion_bound(small).value(), 0.1);
  EXPECT_FALSE(confusion_bound(ClassField(1000, 224, 0)));
}

TEST(ClassImages, DefaultClassesAreSeparable) {
  const auto set = make_class_images({});
  EXPECT_LT(set->ceiling().confusion.value(), 1e-6);
  EXPECT_NEAR(set->ceiling().accuracy, 0.9, 0.02);
}

TEST(ClassImages, PixelsAreAsDescribed) {
  const auto set = make_class_images({});
  Reader reader(*set, Split::train, 3);
  double sum = 0, squares = 0;
  std::set<int> labels;
  for (int i = 0; i < 200; ++i) {
    const Image image = reader.read(i);
    labels.insert(image.label);
    for (const float v : image.pixels) {
      ASSERT_LE(std::abs(v), (255 + ClassField::amplitude) / 128.0);
      sum += static_cast<double>(v);
      squares += static_cast<double>(v) * static_cast<double>(v);
    }
  }
  const double n = 200 * 3072;
  EXPECT_EQ(labels.size(), 10u);
  EXPECT_NEAR(sum / n, 0, 0.1);
  EXPECT_NEAR(squares / n, 1.42, 0.1);  // noise 1.33, fields the rest
  EXPECT_NE(reader.read(0).pixels, Reader(*set, Split::train, 4).read(0).pixels);
  EXPECT_EQ(reader.read(5).pixels, Reader(*set, Split::train, 3).read(5).pixels);
}

}  // namespace
}  // namespace assay::data
