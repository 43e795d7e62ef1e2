#include "workloads/data/crop_pipeline.h"

#include <algorithm>

namespace assay::data {

namespace {

constexpr int chunk = 16;  // rows decoded at once: one row of MCUs at 4:2:0

std::size_t stride_for(int row_pixels) {
  const std::size_t bytes = (static_cast<std::size_t>(row_pixels) * 4 + 63) / 64 * 64 + 64;
  return bytes % 4096 == 0 ? bytes + 64 : bytes;  // avoids rows that evict each other from the cache
}

Box box_of(const JpegDecoder& decoder, const Crop& crop, int denominator) {
  return {decoder.offset_x(), decoder.offset_y(), static_cast<double>(crop.width) / denominator,
          static_cast<double>(crop.height) / denominator};
}

}  // namespace

int decode_denominator(const Crop& crop, int size) {
  const double shrink = static_cast<double>(std::min(crop.width, crop.height)) / size;
  int denominator = 1;
  while (denominator < 8 && shrink / (denominator * 2) >= scaled_decode_reserve) denominator *= 2;
  return denominator;
}

CropPipeline::CropPipeline(int size, const ResizeKernels& kernels) : size_(size), resizer_(size, kernels) {}

template <typename T>
bool CropPipeline::run(const Augmentation& augmentation, T* out) {
  const int denominator = decode_denominator(augmentation.crop, size_);
  if (!decoder_.start(augmentation.crop, denominator)) return false;
  resizer_.prepare(box_of(decoder_, augmentation.crop, denominator), decoder_.row_pixels(), decoder_.rows(),
                   augmentation.flip);
  // The ring holds the source rows of one output row and the chunk that is decoded next. Each row is listed twice, so
  // that any run of rows is a contiguous run of pointers.
  const int capacity = resizer_.max_row_count() + chunk;
  const std::size_t stride = stride_for(decoder_.row_pixels());
  ring_.reserve(stride * static_cast<std::size_t>(capacity));
  rows_.resize(static_cast<std::size_t>(capacity) * 2);
  for (int i = 0; i < capacity * 2; ++i)
    rows_[static_cast<std::size_t>(i)] = ring_.as<std::uint8_t>() + static_cast<std::size_t>(i % capacity) * stride;
  int have = 0;
  for (int y = 0; y < size_; ++y, out += size_ * 3) {
    const int first = resizer_.first_row(y);
    while (have < first + resizer_.row_count(y)) {
      const int slot = have % capacity;
      const int count = std::min({chunk, capacity - slot, decoder_.rows() - have});
      if (!decoder_.read(rows_.data() + slot, count)) return false;
      have += count;
    }
    resizer_.output(y, rows_.data() + first % capacity, out);
  }
  return true;
}

bool CropPipeline::decode(const Crop& crop, DecodedCrop& out) {
  const int denominator = decode_denominator(crop, size_);
  if (!decoder_.start(crop, denominator)) return false;
  out.box = box_of(decoder_, crop, denominator);
  out.row_pixels = decoder_.row_pixels();
  out.rows = decoder_.rows();
  out.stride = stride_for(out.row_pixels);
  out.pixels.reserve(out.stride * static_cast<std::size_t>(out.rows));
  std::uint8_t* rows[chunk];
  for (int have = 0; have < out.rows;) {
    const int count = std::min(chunk, out.rows - have);
    for (int i = 0; i < count; ++i)
      rows[i] = out.pixels.as<std::uint8_t>() + static_cast<std::size_t>(have + i) * out.stride;
    if (!decoder_.read(rows, count)) return false;
    have += count;
  }
  return true;
}

template <typename T>
void CropPipeline::resize(const DecodedCrop& crop, bool flip, T* out) {
  resizer_.prepare(crop.box, crop.row_pixels, crop.rows, flip);
  rows_.resize(static_cast<std::size_t>(crop.rows));
  for (int i = 0; i < crop.rows; ++i)
    rows_[static_cast<std::size_t>(i)] = crop.pixels.as<std::uint8_t>() + static_cast<std::size_t>(i) * crop.stride;
  for (int y = 0; y < size_; ++y, out += size_ * 3) resizer_.output(y, rows_.data() + resizer_.first_row(y), out);
}

template bool CropPipeline::run(const Augmentation&, float*);
template bool CropPipeline::run(const Augmentation&, std::uint16_t*);
template void CropPipeline::resize(const DecodedCrop&, bool, float*);
template void CropPipeline::resize(const DecodedCrop&, bool, std::uint16_t*);

}  // namespace assay::data
