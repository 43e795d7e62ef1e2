// Winograd's transforms, a vector of channels at a time, and the small matrix product between them.
#include "workloads/ops/cpu/kernels/winograd_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"

namespace assay::ops {

namespace {

using namespace vector;

constexpr int vectors = 2;                    // per row of c in registers
constexpr int height = lanes == 16 ? 14 : 6;  // rows of c in registers: 28 of 32, or 12 of 16
constexpr std::int64_t columns = vectors * lanes;

struct Place {
  std::int64_t image, row, column;  // of the tile's first pixel
};
Place place_of(const WinogradTiles& t, std::int64_t tile) {
  const std::int64_t each = t.tiles_h * t.tiles_w, within = tile % each;
  return {tile / each, within / t.tiles_w * 2 + t.origin, within % t.tiles_w * 2 + t.origin};
}

// B^T times the columns of a 4 x 4 tile, transposed; applied twice it is the whole transform.
inline void through_b(const Float (&d)[4][4], Float (&out)[4][4]) {
  for (int i = 0; i < 4; ++i) {
    out[i][0] = d[0][i] - d[2][i];
    out[i][1] = d[1][i] + d[2][i];
    out[i][2] = d[2][i] - d[1][i];
    out[i][3] = d[1][i] - d[3][i];
  }
}

void input(const WinogradTiles& t, const float* images, std::int64_t begin, std::int64_t end, float* to) {
  for (std::int64_t tile = begin; tile < end; ++tile, to += t.stride) {
    const Place at = place_of(t, tile);
    const bool inside = at.row >= 0 && at.column >= 0 && at.row + 4 <= t.h && at.column + 4 <= t.w;
    const float* corner = images + ((at.image * t.h + at.row) * t.w + at.column) * t.channels;
    for (std::int64_t c = 0; c < t.channels; c += lanes) {
      Float d[4][4], half[4][4], whole[4][4];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
          const bool there =
              inside || (at.row + i >= 0 && at.row + i < t.h && at.column + j >= 0 && at.column + j < t.w);
          d[i][j] = there ? load(corner + (i * t.w + j) * t.channels + c) : Float{};
        }
      through_b(d, half);
      through_b(half, whole);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) store(to + (i * 4 + j) * t.size + c, whole[i][j]);
    }
  }
}

void output(const WinogradTiles& t, const float* from, std::int64_t begin, std::int64_t end, float* images) {
  for (std::int64_t tile = begin; tile < end; ++tile, from += t.stride) {
    const Place at = place_of(t, tile);
    const bool below = at.row + 1 < t.h, right = at.column + 1 < t.w;
    float* corner = images + ((at.image * t.h + at.row) * t.w + at.column) * t.channels;
    for (std::int64_t c = 0; c < t.channels; c += lanes) {
      Float half[2][4];
      for (int j = 0; j < 4; ++j) {
        const float* m = from + j * t.size + c;
        const Float middle = load(m + 4 * t.size), other = load(m + 8 * t.size);
        half[0][j] = load(m) + middle + other;
        half[1][j] = middle - other - load(m + 12 * t.size);
      }
      for (int i = 0; i < 2; ++i) {
        if (i == 1 && !below) break;
        float* out = corner + i * t.w * t.channels + c;
        store(out, half[i][0] + half[i][1] + half[i][2]);
        if (right) store(out + t.channels, half[i][1] - half[i][2] - half[i][3]);
      }
    }
  }
}

void gradient(const WinogradTiles& t, const float* images, std::int64_t begin, std::int64_t end, float* to) {
  for (std::int64_t tile = begin; tile < end; ++tile, to += t.stride) {
    const Place at = place_of(t, tile);
    const bool below = at.row + 1 < t.h, right = at.column + 1 < t.w;
    const float* corner = images + ((at.image * t.h + at.row) * t.w + at.column) * t.channels;
    for (std::int64_t c = 0; c < t.channels; c += lanes) {
      Float half[4][2];
      for (int j = 0; j < 2; ++j) {
        const float* from = corner + j * t.channels + c;
        const Float top = j == 0 || right ? load(from) : Float{};
        const Float low = below && (j == 0 || right) ? load(from + t.w * t.channels) : Float{};
        half[0][j] = top;
        half[1][j] = top + low;
        half[2][j] = top - low;
        half[3][j] = -low;
      }
      for (int i = 0; i < 4; ++i) {
        float* out = to + i * 4 * t.size + c;
        store(out, half[i][0]);
        store(out + t.size, half[i][0] + half[i][1]);
        store(out + 2 * t.size, half[i][0] - half[i][1]);
        store(out + 3 * t.size, -half[i][1]);
      }
    }
  }
}

// `rows` by `columns` of c, kept in registers.
template <int rows, bool a_by_rows>
void block(const WinogradProduct& p, const float* a, const float* b, float* c) {
  Float sums[rows][vectors] = {};
  const std::int64_t stride = p.a_stride, step = p.b_stride;
  // Addressing reaches three rows from one pointer and its stride.
  const float* bases[(rows + 2) / 3];
  for (int i = 0; i < (rows + 2) / 3; ++i) bases[i] = a + (a_by_rows ? 3 * i * stride : 3 * i);
  for (std::int64_t l = 0; l < p.depth; ++l) {
    const Float first = load(b), second = load(b + lanes);
    b += step;
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Float x = splat(a_by_rows ? bases[i / 3][i % 3 * stride + l] : a[i]);
      sums[i][0] = x * first + sums[i][0];
      sums[i][1] = x * second + sums[i][1];
    }
    if constexpr (!a_by_rows) a += stride;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < vectors; ++j) {
      float* out = c + i * p.c_stride + j * lanes;
      store(out, p.add ? load(out) + sums[i][j] : sums[i][j]);
    }
}

template <bool a_by_rows, int rows = height - 1>
void tail(const WinogradProduct& p, std::int64_t left, const float* a, const float* b, float* c) {
  if (left == rows) return block<rows, a_by_rows>(p, a, b, c);
  if constexpr (rows > 1) tail<a_by_rows, rows - 1>(p, left, a, b, c);
}

template <bool a_by_rows>
void product_of(const WinogradProduct& p) {
  for (std::int64_t j = 0; j < p.n; j += columns) {
    const float* b = p.b + j / columns * p.b_panel;
    std::int64_t i = 0;
    for (; i + height <= p.m; i += height)
      block<height, a_by_rows>(p, p.a + i * (a_by_rows ? p.a_stride : 1), b, p.c + i * p.c_stride + j);
    if (i < p.m) tail<a_by_rows>(p, p.m - i, p.a + i * (a_by_rows ? p.a_stride : 1), b, p.c + i * p.c_stride + j);
  }
}

void product(const WinogradProduct& p) { p.a_by_rows ? product_of<true>(p) : product_of<false>(p); }

// Three values through G.
inline void through_g(Float a, Float b, Float c, Float (&out)[4]) {
  const Float ends = (a + c) * 0.5f, middle = b * 0.5f;
  out[0] = a;
  out[1] = ends + middle;
  out[2] = ends - middle;
  out[3] = c;
}

// The 16 positions of one output channel's 3 x 3 weights for a vector of input channels; tap(r, s) loads one weight.
template <typename Tap>
inline void transform_weights(const Tap& tap, Float (&u)[4][4]) {
  Float half[3][4];
  for (int s = 0; s < 3; ++s) through_g(tap(0, s), tap(1, s), tap(2, s), half[s]);
  for (int i = 0; i < 4; ++i) through_g(half[0][i], half[1][i], half[2][i], u[i]);
}

void weights(const float* w, std::int64_t in, std::int64_t begin, std::int64_t end, float* u, std::int64_t position) {
  for (std::int64_t panel = begin; panel < end; panel += columns)
    for (std::int64_t c = 0; c < in; c += lanes)
      for (std::int64_t k = panel; k < end && k < panel + columns; ++k) {
        Float values[4][4];
        transform_weights([&](int r, int s) { return load(w + ((k * 3 + r) * 3 + s) * in + c); }, values);
        float* to = u + (panel / columns * in + c) * columns + k - panel;
        for (int i = 0; i < 16; ++i)
          for (int lane = 0; lane < lanes; ++lane) to[i * position + lane * columns] = values[i / 4][i % 4][lane];
      }
}

void rotated_weights(const float* w, std::int64_t out, std::int64_t in, std::int64_t begin, std::int64_t end, float* u,
                     std::int64_t position) {
  for (std::int64_t k = 0; k < out; ++k)
    for (std::int64_t c = begin; c < end; c += lanes) {
      Float values[4][4];
      transform_weights([&](int r, int s) { return load(w + ((k * 3 + 2 - r) * 3 + 2 - s) * in + c); }, values);
      float* to = u + (c / columns * out + k) * columns + c % columns;
      for (int i = 0; i < 16; ++i) store(to + i * position, values[i / 4][i % 4]);
    }
}

// Four values through G^T.
inline void back_through_g(Float a, Float b, Float c, Float d, Float (&out)[3]) {
  const Float sum = (b + c) * 0.5f;
  out[0] = a + sum;
  out[1] = (b - c) * 0.5f;
  out[2] = sum + d;
}

void weights_gradient(const float* du, std::int64_t out, std::int64_t in, std::int64_t stride, std::int64_t begin,
                      std::int64_t end, float* dw, bool add) {
  for (std::int64_t k = begin; k < end; ++k)
    for (std::int64_t c = 0; c < in; c += lanes) {
      const auto at = [&](int position) { return load(du + (position * out + k) * stride + c); };
      Float half[4][3];
      for (int j = 0; j < 4; ++j) back_through_g(at(j), at(4 + j), at(8 + j), at(12 + j), half[j]);
      for (int r = 0; r < 3; ++r) {
        Float values[3];
        back_through_g(half[0][r], half[1][r], half[2][r], half[3][r], values);
        for (int s = 0; s < 3; ++s) {
          float* to = dw + ((k * 3 + r) * 3 + s) * in + c;
          store(to, add ? load(to) + values[s] : values[s]);
        }
      }
    }
}

constexpr WinogradKernels winograd_kernels{columns, height,  input,           output,          gradient,
                                           product, weights, rotated_weights, weights_gradient};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::WinogradKernels
    assay::cpu::KernelsFor<assay::ops::WinogradKernels, assay::cpu::Isa::ASSAY_ISA>::table =
        assay::ops::winograd_kernels;
