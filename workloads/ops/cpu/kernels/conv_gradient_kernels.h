// Packing and products of a convolution's weight gradient; kernels of conv_gradient.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

// dw = dy^T x, a sum over output pixels. Both are packed in panels: a (dy) in panels of `height` output channels, b (x)
// in panels of `width` input channels. Within a panel:
//   panel[pixel / pair][channel][pixel % pair]
// where pair is 1, in bf16 2; an odd last pixel is paired with zeros.
struct GradientProduct {
  std::int64_t m = 0;       // output channels of c, m / height panels of a
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
    std::int64_t pair = 1;  // pixels per element of a panel
    // Packs `channels` of each of `pixels` rows, `stride` elements apart.
    void (*pack_a)(const void* from, std::int64_t pixels, std::int64_t stride, std::int64_t channels, void* to);
    // Packs `channels` (at most `width`) from `first` on of each row, padded with zeros; a null row is zeros.
    void (*pack_b)(const void* const* rows, std::int64_t pixels, std::int64_t first, std::int64_t channels, void* to);
    void (*product)(const GradientProduct&);
  };
  Typed f32;
  Typed bf16;

  // to[i] = or += the sum of `count` arrays, `stride` floats apart.
  void (*sum)(const float* parts, int count, std::int64_t stride, std::int64_t size, float* to, bool add);
};

}  // namespace assay::ops
