// One thread's way from compressed bytes to a normalised crop: decode and resize in step, row by row.
#pragma once

#include "workloads/data/jpeg_decoder.h"
#include "workloads/data/resize.h"

#include <span>
#include <string_view>
#include <vector>

namespace assay::data {

// Pixels of a decoded crop, kept in memory: what the resize is fed when decoding is not part of the measurement.
struct DecodedCrop {
  AlignedBytes pixels;  // (rows, stride) of R, G, B, unused
  std::size_t stride = 0;
  int row_pixels = 0;
  int rows = 0;
  Box box;  // of the crop within these pixels
};

// Shrinking in the frequency domain is used while what is left is still at least this many times the output.
inline constexpr double scaled_decode_reserve = 2.0;

// The denominator (1, 2, 4 or 8) that a crop is decoded with for an output of `size` pixels a side.
int decode_denominator(const Crop& crop, int size);

// Serves one thread. Failing calls return false with the reason in error(). Allocates nothing once it has seen the
// largest image.
class CropPipeline {
 public:
  CropPipeline(int size, const ResizeKernels& kernels);

  // The header alone: the size that the crop is drawn for.
  bool open(std::span<const std::byte> jpeg) { return decoder_.open(jpeg); }
  int width() const { return decoder_.width(); }
  int height() const { return decoder_.height(); }

  // Decodes, resizes, flips and normalises the opened image into out (size, size, 3).
  template <typename T>  // float, or std::uint16_t for bf16
  bool run(const Augmentation& augmentation, T* out);
  // The first half alone, into `out`.
  bool decode(const Crop& crop, DecodedCrop& out);
  // The second half alone.
  template <typename T>
  void resize(const DecodedCrop& crop, bool flip, T* out);

  std::string_view error() const { return decoder_.error(); }

 private:
  int size_;
  JpegDecoder decoder_;
  CropResizer resizer_;
  AlignedBytes ring_;
  std::vector<std::uint8_t*> rows_;
};

}  // namespace assay::data
