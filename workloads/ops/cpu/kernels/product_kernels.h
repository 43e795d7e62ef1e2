// GELU epilogues and sums of rows that accompany a product; kernels of dnnl_matmul.cpp.
#pragma once

#include <cstdint>

namespace assay::ops {

struct ProductKernels {
  // out = gelu(z), aux = z, for `count` elements; aux may be z.
  using Gelu = void (*)(const float* z, void* aux, void* out, std::int64_t count);
  // out = dy * gelu'(z), z of out's type; out may be dy.
  using GeluGradient = void (*)(const float* dy, const void* z, void* out, std::int64_t count);
  struct Type {
    Gelu gelu_tanh, gelu_erf;
    GeluGradient gelu_tanh_gradient, gelu_erf_gradient;
    // Sums over `rows` rows, `stride` elements apart, of columns [begin, end), written or added to sums.
    void (*column_sums)(const void* x, std::int64_t rows, std::int64_t stride, std::int64_t begin, std::int64_t end,
                        bool add, float* sums);
    // Sums of rows [begin, end) of `columns` elements.
    void (*row_sums)(const void* x, std::int64_t columns, std::int64_t begin, std::int64_t end, bool add, float* sums);
  };
  Type f32, bf16;
};

}  // namespace assay::ops
