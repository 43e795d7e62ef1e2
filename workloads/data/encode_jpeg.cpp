// Encodes generated pictures as JPEG with libjpeg-turbo.
#include "harness/core/error.h"
#include "workloads/data/synthetic_image.h"

#include <csetjmp>
#include <cstdlib>

#include <jpeglib.h>

namespace assay::data {

namespace {

struct Failure : jpeg_error_mgr {
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

// Owns nothing that a longjmp could leak: the output belongs to the caller.
bool encode(const SyntheticImage& image, int quality, unsigned char** data, unsigned long* bytes, Failure& failure) {
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&failure);
  failure.error_exit = [](j_common_ptr common) {
    auto* self = static_cast<Failure*>(common->err);
    common->err->format_message(common, self->message);
    std::longjmp(self->escape, 1);
  };
  if (setjmp(failure.escape)) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, data, bytes);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = 3;
  info.in_color_space = JCS_YCbCr;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.dct_method = JDCT_ISLOW;
  for (int component = 0; component < 3; ++component)
    info.comp_info[component].h_samp_factor = info.comp_info[component].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(image.pixels.data() + std::size_t{info.next_scanline} * info.image_width * 3);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

std::vector<std::byte> encode_jpeg(const SyntheticImage& image, int quality) {
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  Failure failure;
  const bool done = encode(image, quality, &data, &bytes, failure);
  std::vector<std::byte> result;
  if (done) result.assign(reinterpret_cast<std::byte*>(data), reinterpret_cast<std::byte*>(data) + bytes);
  std::free(data);
  ASSAY_CHECK(done, "libjpeg could not encode a {} x {} picture: {}", image.width, image.height, failure.message);
  return result;
}

std::string jpeg_library() {
  constexpr int number = LIBJPEG_TURBO_VERSION_NUMBER;
  return fmt::format("libjpeg-turbo {}.{}.{}", number / 1000000, number / 1000 % 1000, number % 1000);
}

}  // namespace assay::data
