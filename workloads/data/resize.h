// Antialiased bilinear resize of a crop to a fixed size, fused with flip and normalisation. It works row by row, so
// that decoded rows are used while they are in the cache.
#pragma once

#include "workloads/data/aligned_bytes.h"
#include "workloads/data/resize_kernels.h"

#include <array>
#include <vector>

namespace assay::data {

// Source rectangle in pixels of the input rows; fractional after decoding at reduced scale.
struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

struct Normalization {
  std::array<float, 3> mean{0.485f, 0.456f, 0.406f};  // mean of ImageNet's RGB in [0, 1], as in torchvision's recipes
  std::array<float, 3> deviation{0.229f, 0.224f, 0.225f};
};

// The triangle filter of one axis: output o is the weighted sum of `taps[o]` inputs from `first[o]` on. The filter is
// as wide as the shrink factor (at least one pixel), its weights sum to 1, and inputs outside [0, inputs) or the box
// are ignored. Same as Pillow's and torchvision's antialiased bilinear.
class TriangleFilter {
 public:
  explicit TriangleFilter(int outputs) : first_(static_cast<std::size_t>(outputs)), taps_(first_.size()) {}

  void prepare(double origin, double length, int inputs);
  int outputs() const { return static_cast<int>(first_.size()); }
  int first(int output) const { return first_[static_cast<std::size_t>(output)]; }
  int taps(int output) const { return taps_[static_cast<std::size_t>(output)]; }
  int max_taps() const { return max_taps_; }
  const float* weights(int output) const { return weights_.as<float>() + output * stride_; }

 private:
  std::vector<int> first_;
  std::vector<int> taps_;
  AlignedBytes weights_;  // (outputs, stride)
  int stride_ = 0;
  int max_taps_ = 0;
};

// For use by one thread, for any number of crops in sequence: prepare(), then output(0), output(1), ...
class CropResizer {
 public:
  CropResizer(int size, const ResizeKernels& kernels, const Normalization& normalization = {});

  // The source has `rows` rows of `row_pixels` pixels (4 bytes each).
  void prepare(const Box& box, int row_pixels, int rows, bool flip);
  // Source rows that output row y needs: [first_row, first_row + row_count).
  int first_row(int y) const { return vertical_.first(y); }
  int row_count(int y) const { return vertical_.taps(y); }
  int max_row_count() const { return vertical_.max_taps(); }
  // Writes output row y, (size, 3) normalised; sources[i] is row first_row(y) + i, with 64 bytes of padding.
  void output(int y, const std::uint8_t* const* sources, float* out);
  void output(int y, const std::uint8_t* const* sources, std::uint16_t* out_bf16);

  int size() const { return size_; }

 private:
  int size_;
  const ResizeKernels& kernels_;
  alignas(16) float scale_[4] = {};
  alignas(16) float bias_[4] = {};
  TriangleFilter vertical_;
  TriangleFilter horizontal_;
  std::vector<int> first_pixel_;  // first input pixel of each output pixel, after the flip
  AlignedBytes spread_;           // (size, padded taps, 4): horizontal weights, each repeated four times
  int padded_taps_ = 0;
  int row_values_ = 0;
  AlignedBytes blended_;  // one row after the vertical pass
  AlignedBytes wide_;     // one output row in f32, before rounding to bf16
};

}  // namespace assay::data
