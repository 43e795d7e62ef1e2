// The smooth random field of each class and the noise on top, which make up generated images.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace assay::data {

// The part of a field that an image shows.
struct FieldView {
  int x = 0;  // offset of the crop, [0, offsets())
  int y = 0;
  bool flip = false;  // left to right
};

// A field is a lattice of uniform random values, at least four cells across the image, interpolated bilinearly. It
// extends the image by an eighth of its size on each side. Three channels.
class ClassField {
 public:
  static constexpr int amplitude = 96;  // largest magnitude of a lattice value

  ClassField(int classes, int size, std::uint64_t seed);

  int classes() const { return classes_; }
  int size() const { return size_; }
  int offsets() const { return 2 * margin_ + 1; }
  std::size_t values() const { return static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_) * 3; }
  // Writes (S, S, 3) values of at most the amplitude. Each thread needs its own scratch, which grows once.
  using Scratch = std::vector<std::int32_t>;
  void render(int shown, const FieldView& view, Scratch& scratch, std::int16_t* out) const;

 private:
  int classes_;
  int size_;
  int margin_;
  int log_cell_;
  int points_;                         // lattice points along a side
  std::vector<std::int16_t> lattice_;  // (classes, points, points, 3)
};

// Pixel noise is uniform over the odd numbers from -255 to 255, which is a sum of eight signed powers of two.
inline constexpr double noise_variance = (65536.0 - 1) / 3;
inline constexpr float pixel_scale = 1.0f / 128;
// out = (clean + noise) * pixel_scale; the noise of element i depends only on key and i.
void add_noise(std::uint64_t key, std::span<const std::int16_t> clean, float* out);

// An upper bound on the fraction of images that the nearest field (over all classes and views) misclassifies. An image
// of field f is nearer to g only if the noise along g - f exceeds half their distance d. Its probability is at most
// exp(-d^2 / (8 variance)), since the noise, a sum of signs, is strictly sub-Gaussian (Hoeffding 1963). The bound is
// the sum over all g of other classes, averaged over f. Nothing if it would take more than seconds to compute.
std::optional<double> confusion_bound(const ClassField& field);

}  // namespace assay::data
