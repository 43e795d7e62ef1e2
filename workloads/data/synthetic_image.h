// Photograph-like pictures computed in integers: the same pixels on any platform, for data sets without a download.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::data {

// A picture in JPEG's colour space: full-range Y, Cb, Cr.
struct SyntheticImage {
  int width = 0;
  int height = 0;
  int label = 0;                     // class, [0, synthetic_classes)
  std::vector<std::uint8_t> pixels;  // (height, width, 3)
};

inline constexpr int synthetic_classes = 10;
inline constexpr int synthetic_quality = 95;  // on libjpeg's scale; without chroma subsampling (4:4:4)

// Draws picture `index` of the stream `seed`: overlapping shapes with sizes from a power law, which gives the edges and
// the 1/f spectrum of photographs ("dead leaves", Lee, Mumford and Huang, IJCV 2001), each with its own colour, shading
// and texture; then the blur of a lens and the grain of a sensor. Pictures are about 500 x 375. Reuses the memory of
// `out`.
void draw_synthetic_image(std::uint64_t seed, std::uint64_t index, SyntheticImage& out);

// Baseline JPEG, 4:4:4, standard Huffman tables. Throws Error if libjpeg fails.
std::vector<std::byte> encode_jpeg(const SyntheticImage& image, int quality = synthetic_quality);

// "libjpeg-turbo 2.1.5"; other encoders write different files.
std::string jpeg_library();

}  // namespace assay::data
