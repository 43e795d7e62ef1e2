// Integers throughout; the only floating-point operation on a pixel is an exact product with a power of two.
#include "workloads/data/class_images.h"

#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "workloads/data/class_field.h"

#include <cmath>

namespace assay::data {

namespace {

constexpr std::int64_t hashed_images = 32;
constexpr std::int64_t images_per_epoch = 1 << 14;

// The random choices for one image, except its noise.
struct Drawn {
  int true_class = 0;
  int label = 0;
  FieldView view;
  std::uint64_t noise = 0;  // key
};

class Drawing {
 public:
  Drawing(const ClassImagesSpec& spec, const ClassField& field, Split split, std::uint64_t seed)
      : spec_(spec),
        field_(field),
        rng_(seed, split == Split::train ? "class images train" : "class images validation") {}

  Drawn draw(std::uint64_t place) const {
    const auto below = [&](std::uint64_t draw, int bound) {
      return static_cast<int>(rng_.below(place << 3 | draw, static_cast<std::uint64_t>(bound)));
    };
    Drawn drawn;
    drawn.true_class = drawn.label = below(0, spec_.classes);
    if (below(1, 1000) < spec_.label_noise)
      drawn.label = (drawn.true_class + 1 + below(2, spec_.classes - 1)) % spec_.classes;
    drawn.view = {below(3, field_.offsets()), below(4, field_.offsets()), below(5, 2) == 1};
    drawn.noise = rng_.u64(place << 3 | 6);
    return drawn;
  }

 private:
  const ClassImagesSpec& spec_;
  const ClassField& field_;
  Rng rng_;
};

class ImageMaker final : public SampleMaker {
 public:
  ImageMaker(const ClassImagesSpec& spec, const ClassField& field, Split split, std::uint64_t seed)
      : field_(field), drawing_(spec, field, split, seed), clean_(field.values()) {}

  void make(std::int64_t position, const SampleSlot& slot) override {
    const Drawn drawn = drawing_.draw(static_cast<std::uint64_t>(position));
    field_.render(drawn.true_class, drawn.view, scratch_, clean_.data());
    add_noise(drawn.noise, clean_, reinterpret_cast<float*>(slot.data));
    *slot.index = position;
    *slot.label = drawn.label;
    *slot.bytes = 0;
  }

 private:
  const ClassField& field_;
  Drawing drawing_;
  std::vector<std::int16_t> clean_;
  ClassField::Scratch scratch_;
};

class Images final : public ClassImages {
 public:
  explicit Images(const ClassImagesSpec& spec) : spec_(spec), field_(spec.classes, spec.size, spec.seed) {}

  SampleKind kind() const override { return SampleKind::image; }
  std::int64_t extent() const override { return spec_.size; }
  std::int64_t classes() const override { return spec_.classes; }
  std::int64_t samples(Split split) const override {
    return split == Split::train ? images_per_epoch : spec_.validation;
  }
  std::string name() const override {
    return fmt::format("class fields C={} S={} label noise {} of 1000 {}", spec_.classes, spec_.size, spec_.label_noise,
                       sha256().substr(0, 16));
  }
  std::unique_ptr<SampleMaker> maker(Split split, std::uint64_t seed) const override {
    return std::make_unique<ImageMaker>(spec_, field_, split, split == Split::train ? seed : spec_.seed);
  }
  const ClassImagesSpec& spec() const override { return spec_; }

  const ImageCeiling& ceiling() const override {
    std::call_once(ceiling_once_, [this] {
      const Drawing drawing(spec_, field_, Split::validation, spec_.seed);
      std::int64_t right = 0;
      for (std::int64_t i = 0; i < spec_.validation; ++i) {
        const Drawn drawn = drawing.draw(static_cast<std::uint64_t>(i));
        right += drawn.true_class == drawn.label;
      }
      const double wrong = spec_.label_noise / 1000.0;
      ceiling_.accuracy = static_cast<double>(right) / static_cast<double>(spec_.validation);
      ceiling_.expected = 1 - wrong;
      ceiling_.confusion = confusion_bound(field_);
      if (wrong > 0) ceiling_.loss = -wrong * std::log(wrong / (spec_.classes - 1));
      if (wrong < 1) ceiling_.loss -= (1 - wrong) * std::log(1 - wrong);
    });
    return ceiling_;
  }

  std::string sha256() const override {
    std::call_once(hash_once_, [this] { hash_ = sha256_of(hashed_images, Hashed::samples_and_labels); });
    return hash_;
  }

 private:
  ClassImagesSpec spec_;
  ClassField field_;
  mutable std::once_flag ceiling_once_, hash_once_;
  mutable ImageCeiling ceiling_;
  mutable std::string hash_;
};

}  // namespace

std::shared_ptr<const ClassImages> make_class_images(const ClassImagesSpec& spec) {
  if (spec.classes < 2 || spec.size < 4)
    throw UsageError(fmt::format("generated images need at least 2 classes and a size of 4 pixels, not {} and {}",
                                 spec.classes, spec.size));
  ASSAY_CHECK(spec.label_noise >= 0 && spec.label_noise <= 1000 && spec.validation >= 1);
  return std::make_shared<Images>(spec);
}

}  // namespace assay::data
