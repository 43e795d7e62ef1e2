// Packing and products of a convolution's weight gradient; the tables behind conv_gradient.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// dw = dy^T x, a sum over output pixels. Both are packed in panels: a (dy) in panels of `height` out channels, b (x) in
// panels of `width` in channels; within a panel one pixel, or in bf16 one pair of pixels, lies behind another:
//   panel[pixel / pair][channel][pixel % pair]
// An odd last pixel is paired with zeros.
struct GradientProduct {
  std::int64_t m = 0;       // out channels of c, m / height panels of a
  std::int64_t depth = 0;   // pixels
  const void* a = nullptr;  // (panels, depth in pairs, height)
  const void* b = nullptr;  // one panel
  float* c = nullptr;       // (m, width)
  std::int64_t c_stride = 0;
  bool add = false;
};

struct ConvGradientKernels {
  std::int64_t height = 0;
  std::int64_t width = 0;

  struct Typed {
    std::int64_t pair = 1;  // pixels that lie together
    // `channels` of each of `pixels` rows that are `stride` elements apart.
    void (*pack_a)(const void* from, std::int64_t pixels, std::int64_t stride, std::int64_t channels, void* to);
    // At most `width` channels from each row, the others zero; a null row is zeros.
    void (*pack_b)(const void* const* rows, std::int64_t pixels, std::int64_t first, std::int64_t channels, void* to);
    void (*product)(const GradientProduct&);
  };
  Typed f32;
  Typed bf16;

  // to[i] = or += the sum of `parts` arrays, `stride` floats apart.
  void (*sum)(const float* parts, int count, std::int64_t stride, std::int64_t size, float* to, bool add);
};

}  // namespace assay::ops
