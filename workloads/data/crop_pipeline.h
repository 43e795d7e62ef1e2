// From compressed bytes to a normalised crop on one thread: decodes and resizes row by row.
#pragma once

#include "workloads/data/jpeg_decoder.h"
#include "workloads/data/resize.h"

#include <span>
#include <string_view>
#include <vector>

namespace assay::data {

// A decoded crop kept in memory: the input of the resize when decoding is not part of the measurement.
struct DecodedCrop {
  AlignedBytes pixels;  // (rows, stride) of R, G, B, unused
  std::size_t stride = 0;
  int row_pixels = 0;
  int rows = 0;
  Box box;  // position of the crop within these pixels
};

// A crop is shrunk in the frequency domain as long as the result is at least this many times the output size.
inline constexpr double scaled_decode_reserve = 2.0;

// The denominator (1, 2, 4 or 8) with which a crop is decoded for an output of `size` x `size` pixels.
int decode_denominator(const Crop& crop, int size);

// For use by one thread. Calls that fail return false and leave the reason in error(). Stops allocating once it has
// seen the largest image.
class CropPipeline {
 public:
  CropPipeline(int size, const ResizeKernels& kernels);

  // Reads only the header: the image size, for drawing a crop.
  bool open(std::span<const std::byte> jpeg) { return decoder_.open(jpeg); }
  int width() const { return decoder_.width(); }
  int height() const { return decoder_.height(); }

  // Decodes, resizes, flips and normalises the opened image into out (size, size, 3).
  template <typename T>  // float, or std::uint16_t for bf16
  bool run(const Augmentation& augmentation, T* out);
  // Decodes into `out`, without resizing.
  bool decode(const Crop& crop, DecodedCrop& out);
  // Resizes, flips and normalises what decode() gave.
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
