// The parts of a Winograd convolution; kernels of winograd.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// Each of the 16 positions of the transformed tiles is a matrix, and the products of all tiles at one position are one
// matrix product.

// Tiles of NHWC images, numbered by image, then row, then column.
struct WinogradTiles {
  std::int64_t h = 0;  // height of the images
  std::int64_t w = 0;
  std::int64_t channels = 0;  // a multiple of channel_block
  std::int64_t tiles_h = 0;
  std::int64_t tiles_w = 0;
  std::int64_t origin = 0;  // row and column of the first tile's first pixel: -padding for inputs, 0 for outputs
  std::int64_t stride = 0;  // floats from one tile to the next in a position's matrix
  std::int64_t size = 0;    // floats from one position's matrix to the next
};

// c (m, n) = or += the sum over l of a(l, i) b(l, j); n is a multiple of WinogradKernels::columns.
struct WinogradProduct {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t depth = 0;
  const float* a = nullptr;
  std::int64_t a_stride = 0;
  bool a_by_rows = true;  // a(l, i) = a[i * a_stride + l], else a[l * a_stride + i]
  const float* b = nullptr;
  std::int64_t b_stride = 0;  // b(l, j) = b[j / columns * b_panel + l * b_stride + j % columns]
  std::int64_t b_panel = 0;
  float* c = nullptr;
  std::int64_t c_stride = 0;
  bool add = false;
};

struct WinogradKernels {
  std::int64_t columns = 0;  // columns of a panel of b
  std::int64_t rows = 0;     // rows of c kept in registers at once

  // Transforms tiles [begin, end) of the images into tiles 0 .. end - begin of `to`.
  void (*input)(const WinogradTiles&, const float* images, std::int64_t begin, std::int64_t end, float* to);
  // The 2 x 2 outputs of the tiles.
  void (*output)(const WinogradTiles&, const float* from, std::int64_t begin, std::int64_t end, float* images);
  // Transforms the gradients of the outputs.
  void (*gradient)(const WinogradTiles&, const float* images, std::int64_t begin, std::int64_t end, float* to);
  void (*product)(const WinogradProduct&);
  // Transforms the weights of output channels [begin, end), in panels of `columns` channels: from w (out, 3, 3, in) to
  // u (16, out / columns, in, columns), with `position` floats from one of the 16 to the next. `begin` is a panel's
  // start.
  void (*weights)(const float* w, std::int64_t in, std::int64_t begin, std::int64_t end, float* u,
                  std::int64_t position);
  // The same for the gradient of the input, for input channels [begin, end): w rotated by 180 degrees,
  // u (16, in / columns, out, columns).
  void (*rotated_weights)(const float* w, std::int64_t out, std::int64_t in, std::int64_t begin, std::int64_t end,
                          float* u, std::int64_t position);
  // dw (out, 3, 3, in) of output channels [begin, end) from the transformed du (16, out, stride).
  void (*weights_gradient)(const float* du, std::int64_t out, std::int64_t in, std::int64_t stride, std::int64_t begin,
                           std::int64_t end, float* dw, bool add);
};

}  // namespace assay::ops
