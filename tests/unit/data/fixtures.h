// Small images and files for the tests of data loading.
#pragma once

#include "tests/support/temporary_folder.h"
#include "workloads/data/synthetic_image.h"

#include <jpeglib.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace assay::data::test {

using Bytes = std::vector<std::byte>;

// A temporary folder for the files of a test.
class Folder {
 public:
  std::string path(const std::string& name = "") const {
    return name.empty() ? folder_.path().string() : (folder_.path() / name).string();
  }
  std::string write(const std::string& name, std::span<const std::byte> bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }
  std::string write(const std::string& name, const std::string& text) const {
    return write(name, std::as_bytes(std::span(text)));
  }

 private:
  assay::test::TemporaryFolder folder_;
};

inline Bytes picture(std::uint64_t index) {
  SyntheticImage image;
  draw_synthetic_image(7, index, image);
  return encode_jpeg(image);
}

enum class Kind { full_chroma, half_chroma, quarter_chroma, grey, cmyk, progressive };

// A picture as another kind of JPEG.
inline Bytes picture_as(Kind kind, std::uint64_t index) {
  SyntheticImage image;
  draw_synthetic_image(7, index, image);
  const int components = kind == Kind::grey ? 1 : kind == Kind::cmyk ? 4 : 3;
  jpeg_compress_struct info{};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&info, &data, &bytes);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = components;
  info.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 4 ? JCS_CMYK : JCS_YCbCr;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 90, TRUE);
  if (components == 3) {
    info.comp_info[0].h_samp_factor = kind == Kind::full_chroma ? 1 : 2;
    info.comp_info[0].v_samp_factor = kind == Kind::quarter_chroma || kind == Kind::progressive ? 2 : 1;
  }
  if (kind == Kind::progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> row(static_cast<std::size_t>(image.width) * 4);
  while (info.next_scanline < info.image_height) {
    const std::uint8_t* pixels = image.pixels.data() + std::size_t{info.next_scanline} * info.image_width * 3;
    for (int x = 0; x < image.width; ++x)
      for (int c = 0; c < components; ++c) row[static_cast<std::size_t>(x * components + c)] = pixels[x * 3 + c % 3];
    JSAMPROW rows[1] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes result(reinterpret_cast<std::byte*>(data), reinterpret_cast<std::byte*>(data) + bytes);
  std::free(data);
  return result;
}

// One ustar member, header and padded content.
inline std::string tar_member(const std::string& name, std::string content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, std::min<std::size_t>(name.size(), 100), name.substr(0, 100));
  const auto octal = [&](std::size_t at, std::size_t width, std::size_t value) {
    for (std::size_t i = width - 1; i-- > 0; value /= 8) header[at + i] = static_cast<char>('0' + value % 8);
  };
  octal(100, 8, 0644);
  octal(124, 12, content.size());
  header[156] = type;
  header.replace(257, 8, std::string("ustar\00000", 8));
  header.replace(148, 8, 8, ' ');
  std::size_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  octal(148, 7, sum);
  header[154] = '\0';
  content.resize((content.size() + 511) / 512 * 512, '\0');
  return header + content;
}
inline std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace assay::data::test
