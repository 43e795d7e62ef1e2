// Batch norm's passes: each reads its arrays once, in memory order.
#include "workloads/ops/cpu/kernels/batch_norm_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"

namespace assay::ops {

namespace {

using namespace vector;

// Rows summed in f32 before they are added to the f64 totals.
constexpr std::int64_t rows_per_partial = 512;

std::int64_t padded(std::int64_t channels) {
  return (channels + channel_padding - 1) / channel_padding * channel_padding;
}

// How whole vectors are stored; the rest of a row is always stored through the caches.
struct Plain {
  template <typename T, typename Count>
  static void put(T* to, Float value, Count count) {
    store(to, value, count);
  }
  static void finish() {}
};
struct Streamed {
  template <typename T>
  static void put(T* to, Float value, Full) {
    stream(to, value);
  }
  template <typename T>
  static void put(T* to, Float value, int count) {
    store(to, value, count);
  }
  static void finish() { fence(); }
};

// Calls add<rows>(first row) over the rows, and adds the f32 sums to the f64 totals every rows_per_partial rows.
template <int group, typename Add>
inline void sum_in_parts(std::int64_t rows, std::int64_t channels, float* partial, double* sums, const Add& add) {
  const std::int64_t width = 2 * padded(channels);
  for (std::int64_t begin = 0; begin < rows; begin += rows_per_partial) {
    const std::int64_t end = rows - begin < rows_per_partial ? rows : begin + rows_per_partial;
    for (std::int64_t i = 0; i < width; ++i) partial[i] = 0;
    std::int64_t row = begin;
    for (; row + group <= end; row += group) add.template operator()<group>(row);
    for (; row < end; ++row) add.template operator()<1>(row);
    for (std::int64_t i = 0; i < width; ++i) sums[i] += static_cast<double>(partial[i]);
  }
}

template <typename T>
void statistics(const BatchNormStatistics& args) {
  const std::int64_t channels = args.channels;
  float* first = args.partial;
  float* second = args.partial + padded(channels);
  sum_in_parts<8>(args.rows, channels, args.partial, args.sums, [&]<int group>(std::int64_t row) {
    const T* x = static_cast<const T*>(args.x) + row * channels;
    for_vectors(0, channels, [&](std::int64_t c, auto count) {
      const Float shift = load(args.shift + c);
      Float total{}, squares{};
      for (int i = 0; i < group; ++i) {
        const Float d = load(x + i * channels + c, count) - shift;
        total += d;
        squares = d * d + squares;
      }
      store(first + c, load(first + c) + total);
      store(second + c, load(second + c) + squares);
    });
  });
}

template <typename T, typename Store, bool relu, bool with_residual>
void apply_rows(const BatchNormApply& args) {
  const std::int64_t channels = args.channels;
  const T* x = static_cast<const T*>(args.x);
  const T* residual = static_cast<const T*>(args.residual);
  T* y = static_cast<T*>(args.y);
  for (std::int64_t row = 0; row < args.rows; ++row) {
    for_vectors<2>(0, channels, [&](std::int64_t c, auto count) {
      Float value = load(args.factor + c) * (load(x + c, count) - load(args.mean + c)) + load(args.offset + c);
      if constexpr (with_residual) value += load(residual + c, count);
      if constexpr (relu) value = maximum(Float{}, value);  // NaN stays
      Store::put(y + c, value, count);
    });
    x += channels;
    y += channels;
    if constexpr (with_residual) residual += channels;
  }
  Store::finish();
}

template <typename T, typename Store>
void apply_stored(const BatchNormApply& args) {
  if (args.relu)
    return args.residual ? apply_rows<T, Store, true, true>(args) : apply_rows<T, Store, true, false>(args);
  args.residual ? apply_rows<T, Store, false, true>(args) : apply_rows<T, Store, false, false>(args);
}

template <typename T>
void apply(const BatchNormApply& args) {
  args.stream ? apply_stored<T, Streamed>(args) : apply_stored<T, Plain>(args);
}

template <typename T, bool relu, bool with_other>
struct Gradient {
  explicit Gradient(const BatchNormGradient& from)
      : dy(static_cast<const T*>(from.dy)),
        other(static_cast<const T*>(from.other)),
        y(static_cast<const T*>(from.y)) {}

  template <typename Count>
  Float at(std::int64_t i, Count count) const {
    Float g = load(dy + i, count);
    if constexpr (with_other) g += load(other + i, count);
    if constexpr (relu) g = load(y + i, count) > 0.0f ? g : Float{};
    return g;
  }

  const T* dy;
  const T* other;
  const T* y;
};

// Calls fn<Gradient>() for the kind of `from`.
template <typename T, typename Fn>
void with_gradient(const BatchNormGradient& from, const Fn& fn) {
  if (from.y)
    from.other ? fn.template operator()<Gradient<T, true, true>>() : fn.template operator()<Gradient<T, true, false>>();
  else
    from.other ? fn.template operator()<Gradient<T, false, true>>()
               : fn.template operator()<Gradient<T, false, false>>();
}

template <typename T, typename G, bool with_residual, typename Store>
void reduce_rows(const BatchNormReduce& args) {
  const std::int64_t channels = args.channels;
  const G gradient(args.gradient);
  const T* x = static_cast<const T*>(args.x);
  T* dresidual = static_cast<T*>(args.dresidual);
  float* first = args.partial;
  float* second = args.partial + padded(channels);
  sum_in_parts<4>(args.rows, channels, args.partial, args.sums, [&]<int group>(std::int64_t row) {
    for_vectors(0, channels, [&](std::int64_t c, auto count) {
      const Float mean = load(args.mean + c);
      Float total{}, product{};
      for (int i = 0; i < group; ++i) {
        const std::int64_t at = (row + i) * channels + c;
        const Float g = gradient.at(at, count);
        if constexpr (with_residual) Store::put(dresidual + at, g, count);
        total += g;
        product = g * (load(x + at, count) - mean) + product;
      }
      store(first + c, load(first + c) + total);
      store(second + c, load(second + c) + product);
    });
  });
  Store::finish();
}

template <typename T>
void reduce(const BatchNormReduce& args) {
  with_gradient<T>(args.gradient, [&]<typename G>() {
    if (!args.dresidual) return reduce_rows<T, G, false, Plain>(args);
    args.stream ? reduce_rows<T, G, true, Streamed>(args) : reduce_rows<T, G, true, Plain>(args);
  });
}

template <typename T, typename G, typename Store>
void input_rows(const BatchNormInput& args) {
  const std::int64_t channels = args.channels;
  const G gradient(args.gradient);
  const T* x = static_cast<const T*>(args.x);
  T* dx = static_cast<T*>(args.dx);
  for (std::int64_t row = 0; row < args.rows; ++row)
    for_vectors<2>(0, channels, [&](std::int64_t c, auto count) {
      const std::int64_t at = row * channels + c;
      const Float centred = load(x + at, count) - load(args.mean + c);
      const Float rest = load(args.slope + c) * centred + load(args.offset + c);
      Store::put(dx + at, load(args.factor + c) * gradient.at(at, count) + rest, count);
    });
  Store::finish();
}

template <typename T>
void input(const BatchNormInput& args) {
  with_gradient<T>(args.gradient, [&]<typename G>() {
    args.stream ? input_rows<T, G, Streamed>(args) : input_rows<T, G, Plain>(args);
  });
}

template <typename T>
void add_row(const void* x, std::int64_t channels, float factor, float* to) {
  for_vectors(0, channels, [&](std::int64_t c, auto count) {
    store(to + c, load(to + c, count) + factor * load(static_cast<const T*>(x) + c, count), count);
  });
}

template <typename T>
constexpr BatchNormKernels::Typed typed{statistics<T>, apply<T>, reduce<T>, input<T>, add_row<T>};
constexpr BatchNormKernels batch_norm_kernels{typed<float>, typed<bf16>};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::BatchNormKernels
    assay::cpu::KernelsFor<assay::ops::BatchNormKernels, assay::cpu::Isa::ASSAY_ISA>::table =
        assay::ops::batch_norm_kernels;
