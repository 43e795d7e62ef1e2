// JPEG decoding with libjpeg-turbo, only as far as a crop needs: rows above it are entropy-decoded and dropped, columns
// left and right of it are not transformed, rows below it are never read.
#pragma once

#include "workloads/data/jpeg_memory.h"
#include "workloads/data/random_crop.h"

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace assay::data {

struct JpegLimits {
  std::uint64_t max_pixels = std::uint64_t{1} << 27;    // more is treated as a decompression bomb
  std::size_t max_memory_bytes = std::size_t{1} << 30;  // limit of libjpeg's memory for an image
  int max_scans = 200;                                  // most scans of a progressive image
};

// For use by one thread, for any number of images in sequence. Calls that fail return false and leave the reason in
// error(); the next open() resets. Stops allocating once it has seen the largest image.
//
// Damaged data are failures, not grey areas: a missing end-of-image marker, bad Huffman codes and early markers fail
// even if libjpeg would continue with a warning. Damage outside of the crop goes unnoticed, except for truncation,
// which open() checks. Decoding is exact: integer DCT, triangle ("fancy") chroma upsampling.
class JpegDecoder {
 public:
  explicit JpegDecoder(JpegLimits limits = {});
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header of an image, which must outlive the last read().
  bool open(std::span<const std::byte> jpeg);
  int width() const { return static_cast<int>(info_.image_width); }
  int height() const { return static_cast<int>(info_.image_height); }

  // Prepares to decode `crop`, shrunk in the frequency domain by `denominator` (1, 2, 4 or 8). Rows are then
  // row_pixels() wide, and the crop starts at offset_x(), offset_y() of what read() returns: in pixels of the shrunk
  // image, and fractional if the denominator does not divide the crop's corner.
  bool start(const Crop& crop, int denominator = 1);
  int row_pixels() const { return row_pixels_; }
  double offset_x() const { return offset_x_; }
  double offset_y() const { return offset_y_; }
  int rows() const { return rows_; }  // number of rows that read() can return

  // Reads the next `count` rows as bytes R, G, B, unused. Each row needs room for row_pixels() * 4 + 64 bytes.
  bool read(std::uint8_t* const* rows, int count);

  // Why the last call failed.
  std::string_view error() const { return message_; }

 private:
  struct ErrorManager : jpeg_error_mgr {
    JpegDecoder* self;
  };
  struct Progress : jpeg_progress_mgr {
    JpegDecoder* self;
  };

  [[noreturn]] static void error_exit(j_common_ptr info);
  static void emit_message(j_common_ptr info, int level);
  static void check_scans(j_common_ptr info);
  bool fail(const char* message);
  bool has_end_marker() const;
  void start_decompress(const Crop& crop, int denominator);
  // Calls `step`; returns false on a libjpeg error. `step` must own nothing that needs a destructor.
  template <typename Step>
  bool guarded(Step step);

  jpeg_decompress_struct info_{};
  ErrorManager errors_{};
  Progress progress_{};
  jpeg_source_mgr source_{};
  JpegMemory memory_;
  JpegLimits limits_;
  std::span<const std::byte> jpeg_;
  std::jmp_buf escape_;
  char message_[JMSG_LENGTH_MAX] = {};
  int row_pixels_ = 0;
  int rows_ = 0;
  double offset_x_ = 0;
  double offset_y_ = 0;
  bool cmyk_ = false;
};

}  // namespace assay::data
