// JPEG decoding by libjpeg-turbo, only as far as a crop needs: rows above it are entropy-decoded and dropped, columns
// beside it are not transformed, rows below it are never read.
#pragma once

#include "workloads/data/jpeg_memory.h"
#include "workloads/data/random_crop.h"

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace assay::data {

struct JpegLimits {
  std::uint64_t max_pixels = std::uint64_t{1} << 27;    // more is taken for a decompression bomb
  std::size_t max_memory_bytes = std::size_t{1} << 30;  // that libjpeg may use for one image
  int max_scans = 200;                                  // of a progressive image
};

// One decoder serves one thread and any number of images, one after another. Failing calls return false and leave the
// reason in error(); the next open() starts afresh. Nothing is allocated once the largest image has been seen.
//
// Damaged data are failures, not grey areas: a missing end-of-image marker, bad Huffman codes and early markers fail
// even where libjpeg would go on with a warning. Damage in a part that the crop does not need goes unseen, except for
// truncation, which open() looks for. Decoding is exact: integer DCT, triangle ("fancy") chroma upsampling.
class JpegDecoder {
 public:
  explicit JpegDecoder(JpegLimits limits = {});
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header of an image, which must stay in place until the last row is read.
  bool open(std::span<const std::byte> jpeg);
  int width() const { return static_cast<int>(info_.image_width); }
  int height() const { return static_cast<int>(info_.image_height); }

  // Prepares to decode `crop`, shrunk in the frequency domain by `denominator` (1, 2, 4 or 8). Afterwards rows are
  // row_pixels() wide, and the crop starts offset_x() pixels into each, on the first row that read() gives: both in
  // pixels of the shrunk image, and fractional when the denominator does not divide the crop's corner.
  bool start(const Crop& crop, int denominator = 1);
  int row_pixels() const { return row_pixels_; }
  double offset_x() const { return offset_x_; }
  double offset_y() const { return offset_y_; }
  int rows() const { return rows_; }  // that read() can give in all

  // Reads the next `count` rows as R, G, B, unused bytes, at least row_pixels() * 4 + 64 bytes of room in each.
  bool read(std::uint8_t* const* rows, int count);

  // Why the last call failed.
  std::string_view error() const { return message_; }
  // Blocks of memory taken so far; constant in a steady state.
  std::size_t blocks_allocated() const { return memory_.blocks_allocated(); }

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
  // Calls `step` where libjpeg's errors come back as false; `step` must own nothing that needs a destructor.
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
