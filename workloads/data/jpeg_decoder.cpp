// libjpeg reports errors by a callback that must not return. It jumps back to guarded(), over C frames only.
#include "workloads/data/jpeg_decoder.h"

#include "harness/core/error.h"

#include <algorithm>
#include <cstring>

#include <jerror.h>

namespace assay::data {

namespace {

const JOCTET* octets(std::span<const std::byte> bytes) { return reinterpret_cast<const JOCTET*>(bytes.data()); }

void no_op(j_decompress_ptr) {}

boolean out_of_data(j_decompress_ptr info) {
  ERREXIT(info, JERR_INPUT_EOF);
  return FALSE;
}

void skip_data(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  if (static_cast<std::size_t>(count) > info->src->bytes_in_buffer) ERREXIT(info, JERR_INPUT_EOF);
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= static_cast<std::size_t>(count);
}

// Warnings after which the pixels are wrong; the others are about harmless markers.
bool means_damage(int code) {
  switch (code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION: return true;
    default: return false;
  }
}

// Adobe stores CMYK inverted, so that products give the colour; without its marker 255 means full ink.
void cmyk_to_rgb(std::uint8_t* row, int pixels, bool inverted) {
  for (int i = 0; i < pixels; ++i, row += 4) {
    const int k = inverted ? row[3] : 255 - row[3];
    for (int channel = 0; channel < 3; ++channel) {
      const int ink = inverted ? row[channel] : 255 - row[channel];
      row[channel] = static_cast<std::uint8_t>((ink * k + 127) / 255);
    }
    row[3] = 255;
  }
}

}  // namespace

JpegDecoder::JpegDecoder(JpegLimits limits) : memory_(limits.max_memory_bytes), limits_(limits) {
  info_.err = jpeg_std_error(&errors_);
  errors_.error_exit = error_exit;
  errors_.emit_message = emit_message;
  errors_.self = this;
  source_.init_source = no_op;
  source_.fill_input_buffer = out_of_data;
  source_.skip_input_data = skip_data;
  source_.resync_to_restart = jpeg_resync_to_restart;
  source_.term_source = no_op;
  progress_.progress_monitor = check_scans;
  progress_.self = this;
  const bool created = guarded([this] { jpeg_create_decompress(&info_); });
  ASSAY_CHECK(created, "libjpeg: {}", message_);
  memory_.install(reinterpret_cast<j_common_ptr>(&info_));
  info_.src = &source_;
  info_.progress = &progress_;
}

JpegDecoder::~JpegDecoder() {
  memory_.remove(reinterpret_cast<j_common_ptr>(&info_));
  jpeg_destroy_decompress(&info_);
}

void JpegDecoder::error_exit(j_common_ptr info) {
  JpegDecoder& self = *static_cast<ErrorManager*>(info->err)->self;
  info->err->format_message(info, self.message_);
  std::longjmp(self.escape_, 1);
}

void JpegDecoder::emit_message(j_common_ptr info, int level) {
  if (level < 0 && means_damage(info->err->msg_code)) error_exit(info);
}

void JpegDecoder::check_scans(j_common_ptr info) {
  if (!info->is_decompressor) return;
  JpegDecoder& self = *static_cast<Progress*>(info->progress)->self;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= self.limits_.max_scans) return;
  std::snprintf(self.message_, sizeof self.message_, "more than %d scans", self.limits_.max_scans);
  std::longjmp(self.escape_, 1);
}

bool JpegDecoder::fail(const char* message) {
  std::snprintf(message_, sizeof message_, "%s", message);
  return false;
}

template <typename Step>
bool JpegDecoder::guarded(Step step) {
  if (setjmp(escape_)) return false;
  step();
  return true;
}

bool JpegDecoder::has_end_marker() const {
  // Entropy-coded data never contain FF D9, so search backwards from the end to the start of the first scan.
  const auto* begin = reinterpret_cast<const std::byte*>(source_.next_input_byte);
  const auto* end = jpeg_.data() + jpeg_.size();
  while (end - begin >= 2) {
    const auto* found =
        static_cast<const std::byte*>(memrchr(begin + 1, 0xD9, static_cast<std::size_t>(end - begin - 1)));
    if (!found) return false;
    if (found[-1] == std::byte{0xFF}) return true;
    end = found;
  }
  return false;
}

bool JpegDecoder::open(std::span<const std::byte> jpeg) {
  jpeg_abort_decompress(&info_);
  jpeg_ = jpeg;
  if (jpeg.empty()) return fail("empty file");
  source_.next_input_byte = octets(jpeg);
  source_.bytes_in_buffer = jpeg.size();
  if (!guarded([this] { jpeg_read_header(&info_, TRUE); })) return false;
  if (std::uint64_t{info_.image_width} * info_.image_height > limits_.max_pixels) {
    std::snprintf(message_, sizeof message_, "%u x %u pixels is over the limit of %llu", info_.image_width,
                  info_.image_height, static_cast<unsigned long long>(limits_.max_pixels));
    return false;
  }
  if (!has_end_marker()) return fail("truncated: no end-of-image marker");
  return true;
}

void JpegDecoder::start_decompress(const Crop& crop, int denominator) {
  cmyk_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
  info_.out_color_space = cmyk_ ? JCS_CMYK : JCS_EXT_RGBX;
  info_.dct_method = JDCT_ISLOW;
  info_.do_fancy_upsampling = TRUE;
  info_.scale_num = 1;
  info_.scale_denom = static_cast<unsigned>(denominator);
  jpeg_start_decompress(&info_);
  const int full_width = static_cast<int>(info_.output_width);
  const int full_height = static_cast<int>(info_.output_height);
  const int left = crop.x / denominator;
  const int right = std::min(full_width, (crop.x + crop.width + denominator - 1) / denominator);
  const int top = crop.y / denominator;
  const int bottom = std::min(full_height, (crop.y + crop.height + denominator - 1) / denominator);
  // One extra pixel on each side makes chroma upsampling inside the crop the same as in the whole image. At least 16
  // pixels, because libjpeg's upsampler cannot handle narrower rows.
  JDIMENSION x = static_cast<JDIMENSION>(std::max(0, std::min(left - 1, full_width - 16)));
  JDIMENSION columns = static_cast<JDIMENSION>(std::min(full_width, std::max(right + 1, static_cast<int>(x) + 16))) - x;
  if (x > 0 || static_cast<int>(columns) < full_width) jpeg_crop_scanline(&info_, &x, &columns);
  if (top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(top));
  row_pixels_ = static_cast<int>(info_.output_width);
  rows_ = bottom - top;
  offset_x_ = static_cast<double>(crop.x) / denominator - x;
  offset_y_ = static_cast<double>(crop.y) / denominator - top;
}

bool JpegDecoder::start(const Crop& crop, int denominator) {
  if (crop.x < 0 || crop.y < 0 || crop.width < 1 || crop.height < 1 || crop.x + crop.width > width() ||
      crop.y + crop.height > height())
    return fail("crop outside the image");
  return guarded([&] { start_decompress(crop, denominator); });
}

bool JpegDecoder::read(std::uint8_t* const* rows, int count) {
  return guarded([&] {
    int done = 0;
    while (done < count) {
      auto** next = const_cast<JSAMPARRAY>(rows + done);
      const int got = static_cast<int>(jpeg_read_scanlines(&info_, next, static_cast<JDIMENSION>(count - done)));
      if (got == 0) ERREXIT(&info_, JERR_INPUT_EOF);
      if (cmyk_)
        for (int row = 0; row < got; ++row) cmyk_to_rgb(rows[done + row], row_pixels_, info_.saw_Adobe_marker);
      done += got;
    }
  });
}

}  // namespace assay::data
