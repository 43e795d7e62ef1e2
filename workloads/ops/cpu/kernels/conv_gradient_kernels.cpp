// Packing into panels, so that the product reads memory in order, and the product, with a block of c in registers.
#include "workloads/ops/cpu/kernels/conv_gradient_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"

namespace assay::ops {

namespace {

using namespace vector;

constexpr int height = lanes == 16 ? 14 : 6;  // rows of c in registers: 28 of 32, or 12 of 16
constexpr std::int64_t width = 2 * lanes;

// An element of a panel: a float, or two bf16, the first pixel's in the lower half.
template <typename T>
struct Layout;
template <>
struct Layout<float> {
  using Element = float;
  static constexpr std::int64_t pair = 1;
  static Float fused(Float sum, Element a, const Element* b) { return splat(a) * load(b) + sum; }
};
template <>
struct Layout<bf16> {
  using Element = std::uint32_t;
  static constexpr std::int64_t pair = 2;
  static Float fused(Float sum, Element a, const Element* b) {
    Bits pairs;
    __builtin_memcpy(&pairs, b, sizeof pairs);
    return add_pairs(sum, Bits{} + a, pairs);
  }
};

template <typename T>
std::int64_t steps_of(std::int64_t pixels) {
  return (pixels + Layout<T>::pair - 1) / Layout<T>::pair;
}

inline Bits load_halves(const bf16* from) {
  Halves x;
  __builtin_memcpy(&x, from, sizeof x);
  return widen(x);
}
inline void store_bits(std::uint32_t* to, Bits x) { __builtin_memcpy(to, &x, sizeof x); }
inline std::uint32_t pair_of(const bf16* first, const bf16* second) {
  std::uint16_t low, high = 0;
  __builtin_memcpy(&low, first, sizeof low);
  if (second) __builtin_memcpy(&high, second, sizeof high);
  return low | std::uint32_t{high} << 16;
}

// One panel, from the first `height` of the remaining channels.
void pack_a_panel(const float* from, std::int64_t pixels, std::int64_t stride, std::int64_t channels, float* to) {
  if (channels >= height) {
    for (std::int64_t t = 0; t < pixels; ++t)
      __builtin_memcpy(to + t * height, from + t * stride, height * sizeof(float));
    return;
  }
  for (std::int64_t t = 0; t < pixels; ++t)
    for (std::int64_t i = 0; i < height; ++i) to[t * height + i] = i < channels ? from[t * stride + i] : 0.0f;
}

void pack_a_panel(const bf16* from, std::int64_t pixels, std::int64_t stride, std::int64_t channels,
                  std::uint32_t* to) {
  for (std::int64_t t = 0; t < pixels; t += 2, to += height) {
    const bf16* first = from + t * stride;
    const bf16* second = t + 1 < pixels ? first + stride : nullptr;
    // Stores a whole vector: the next step or the next panel overwrites what exceeds this panel.
    if (lanes >= height && channels >= lanes) {
      store_bits(to, load_halves(first) | (second ? load_halves(second) << 16 : Bits{}));
      continue;
    }
    for (std::int64_t i = 0; i < height; ++i)
      to[i] = i < channels ? pair_of(first + i, second ? second + i : nullptr) : 0;
  }
}

template <typename T>
void pack_a(const void* from, std::int64_t pixels, std::int64_t stride, std::int64_t channels, void* to) {
  using Element = typename Layout<T>::Element;
  const std::int64_t size = steps_of<T>(pixels) * height;
  for (std::int64_t i = 0; i < channels; i += height)
    pack_a_panel(static_cast<const T*>(from) + i, pixels, stride, channels - i,
                 static_cast<Element*>(to) + i / height * size);
}

void pack_b_row(const float* row, std::int64_t channels, float* to) {
  if (row && channels == width) {
    store(to, load(row));
    store(to + lanes, load(row + lanes));
    return;
  }
  for (std::int64_t i = 0; i < width; ++i) to[i] = row && i < channels ? row[i] : 0.0f;
}

void pack_b_rows(const bf16* first, const bf16* second, std::int64_t channels, std::uint32_t* to) {
  if (channels == width) {
    for (std::int64_t i = 0; i < width; i += lanes) {
      const Bits low = first ? load_halves(first + i) : Bits{}, high = second ? load_halves(second + i) : Bits{};
      store_bits(to + i, low | high << 16);
    }
    return;
  }
  const bf16 zero{};
  for (std::int64_t i = 0; i < width; ++i)
    to[i] = i < channels ? pair_of(first ? first + i : &zero, second ? second + i : nullptr) : 0;
}

template <typename T>
void pack_b(const void* const* rows, std::int64_t pixels, std::int64_t first, std::int64_t channels, void* to) {
  const auto row = [&](std::int64_t t) {
    return t < pixels && rows[t] ? static_cast<const T*>(rows[t]) + first : nullptr;
  };
  auto* out = static_cast<typename Layout<T>::Element*>(to);
  if constexpr (Layout<T>::pair == 1) {
    for (std::int64_t t = 0; t < pixels; ++t) pack_b_row(row(t), channels, out + t * width);
  } else {
    for (std::int64_t t = 0; t < pixels; t += 2) pack_b_rows(row(t), row(t + 1), channels, out + t / 2 * width);
  }
}

template <typename T, int rows>
void block(const GradientProduct& p, const typename Layout<T>::Element* a, float* c) {
  using L = Layout<T>;
  const auto* b = static_cast<const typename L::Element*>(p.b);
  Float sums[rows][2] = {};
  for (std::int64_t step = steps_of<T>(p.depth); step > 0; --step, a += height, b += width) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      sums[i][0] = L::fused(sums[i][0], a[i], b);
      sums[i][1] = L::fused(sums[i][1], a[i], b + lanes);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 2; ++j) {
      float* out = c + i * p.c_stride + j * lanes;
      store(out, p.add ? load(out) + sums[i][j] : sums[i][j]);
    }
}

template <typename T, int rows = height - 1>
void tail(const GradientProduct& p, std::int64_t left, const typename Layout<T>::Element* a, float* c) {
  if (left == rows) return block<T, rows>(p, a, c);
  if constexpr (rows > 1) tail<T, rows - 1>(p, left, a, c);
}

template <typename T>
void product(const GradientProduct& p) {
  const auto* a = static_cast<const typename Layout<T>::Element*>(p.a);
  const std::int64_t panel = steps_of<T>(p.depth) * height;
  std::int64_t i = 0;
  for (; i + height <= p.m; i += height) block<T, height>(p, a + i / height * panel, p.c + i * p.c_stride);
  if (i < p.m) tail<T>(p, p.m - i, a + i / height * panel, p.c + i * p.c_stride);
}

void sum(const float* parts, int count, std::int64_t stride, std::int64_t size, float* to, bool add) {
  for_vectors<2>(0, size, [&](std::int64_t i, auto n) {
    Float total = load(parts + i, n);
    for (int part = 1; part < count; ++part) total += load(parts + part * stride + i, n);
    store(to + i, add ? load(to + i, n) + total : total, n);
  });
}

template <typename T>
constexpr ConvGradientKernels::Typed typed{Layout<T>::pair, pack_a<T>, pack_b<T>, product<T>};
constexpr ConvGradientKernels conv_gradient_kernels{height, width, typed<float>, typed<bf16>, sum};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::ConvGradientKernels
    assay::cpu::KernelsFor<assay::ops::ConvGradientKernels, assay::cpu::Isa::ASSAY_ISA>::table =
        assay::ops::conv_gradient_kernels;
