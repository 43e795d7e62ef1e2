// Layer norm and RMS norm; a row stays in the first-level cache between its passes.
#include "workloads/ops/cpu/kernels/norm_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"

namespace assay::ops {
namespace {

using namespace vector;

template <typename T, bool layer>
void forward_row(const NormForwardRows& rows, std::int64_t row) {
  const std::int64_t n = rows.columns;
  const T* x = static_cast<const T*>(rows.x) + row * n;
  T* y = static_cast<T*>(rows.y) + row * n;
  Float first[4] = {};  // sums of x, or of x^2 for RMS norm
  if (rows.residual) {
    const T* residual = static_cast<const T*>(rows.residual) + row * n;
    T* sum = static_cast<T*>(rows.sum) + row * n;
    for_vectors<4>(0, n, [&](std::int64_t i, auto count) {
      store(sum + i, load(x + i, count) + load(residual + i, count), count);
    });
    x = sum;
  }
  for_vectors<4>(0, n, [&](std::int64_t i, auto count, auto u) {
    const Float v = load(x + i, count);
    first[u.value] += layer ? v : v * v;
  });
  const float scale = 1.0f / static_cast<float>(n);
  const float total = vector::sum((first[0] + first[1]) + (first[2] + first[3])) * scale;
  float mean = 0, variance = total;
  if constexpr (layer) {
    mean = total;
    Float squares[4] = {};
    for_vectors<4>(0, n, [&](std::int64_t i, auto count, auto u) {
      const Float d = keep(load(x + i, count) - mean, count);
      squares[u.value] += d * d;
    });
    variance = vector::sum((squares[0] + squares[1]) + (squares[2] + squares[3])) * scale;
    rows.mean[row] = mean;
  }
  const float inverse = 1.0f / __builtin_sqrtf(variance + rows.epsilon);
  rows.inverse[row] = inverse;
  const T* next = static_cast<const T*>(rows.x) + (row + 1) * n;
  const T* next_residual = rows.residual ? static_cast<const T*>(rows.residual) + (row + 1) * n : next;
  for_vectors<4>(0, n, [&](std::int64_t i, auto count) {
    __builtin_prefetch(next + i);
    __builtin_prefetch(next_residual + i);
    Float v = load(x + i, count);
    if constexpr (layer) v -= mean;
    v = v * inverse * load(rows.weight + i, count);
    if constexpr (layer)
      if (rows.bias) v += load(rows.bias + i, count);
    store(y + i, v, count);
  });
}

template <typename T>
void forward(const NormForwardRows& rows, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row)
    rows.layer ? forward_row<T, true>(rows, row) : forward_row<T, false>(rows, row);
}

// Processes `height` rows together, so that parameter gradients are loaded and stored once for all of them.
template <typename T, bool layer, int height>
void backward_rows(const NormBackwardRows& rows, std::int64_t row) {
  const std::int64_t n = rows.columns;
  const T* dy = static_cast<const T*>(rows.dy) + row * n;
  const T* x = static_cast<const T*>(rows.sum) + row * n;
  const T* dx = static_cast<const T*>(rows.dx) + row * n;
  float mean[height], inverse[height];
  for (int r = 0; r < height; ++r) {
    mean[r] = layer ? rows.mean[row + r] : 0.0f;
    inverse[r] = rows.inverse[row + r];
  }
  Float along[height] = {};  // dot product of weight * dy and the normalised row
  Float sums[height] = {};   // sum of weight * dy
  for_vectors(0, n, [&](std::int64_t i, auto count) {
    const Float weight = load(rows.weight + i, count);
    Float dweight = load(rows.dweight + i, count), dbias = {};
    repeat<height>([&](auto r) {
      __builtin_prefetch(dx + r.value * n + i, 1, 2);
      __builtin_prefetch(dy + (height + r.value) * n + i, 0, 2);
      const Float g = load(dy + r.value * n + i, count);
      const Float normal = (load(x + r.value * n + i, count) - mean[r.value]) * inverse[r.value];
      const Float gn = g * normal;
      dweight += gn;
      along[r.value] += gn * weight;  // lanes beyond the row hold zero weights
      if constexpr (layer) {
        dbias += g;
        sums[r.value] += g * weight;
      }
    });
    store(rows.dweight + i, dweight, count);
    if constexpr (layer)
      if (rows.dbias) store(rows.dbias + i, load(rows.dbias + i, count) + dbias, count);
  });
  const float scale = 1.0f / static_cast<float>(n);
  for (int r = 0; r < height; ++r) {
    const float c = vector::sum(along[r]) * scale;
    const float shift = layer ? vector::sum(sums[r]) * scale : 0.0f;
    const T* dy_row = dy + r * n;
    const T* x_row = x + r * n;
    const T* dsum = rows.dsum ? static_cast<const T*>(rows.dsum) + (row + r) * n : nullptr;
    T* dx_row = static_cast<T*>(rows.dx) + (row + r) * n;
    const auto gradient = [&](std::int64_t i, auto count) {
      __builtin_prefetch(x_row + height * n + i, 0, 2);
      const Float normal = (load(x_row + i, count) - mean[r]) * inverse[r];
      Float g = load(dy_row + i, count) * load(rows.weight + i, count) - normal * c;
      if constexpr (layer) g -= shift;
      return g * inverse[r];
    };
    if (dsum)
      for_vectors<2>(0, n, [&](std::int64_t i, auto count) {
        store(dx_row + i, gradient(i, count) + load(dsum + i, count), count);
      });
    else
      for_vectors<2>(0, n, [&](std::int64_t i, auto count) { store(dx_row + i, gradient(i, count), count); });
  }
}

template <typename T, bool layer>
void backward_kind(const NormBackwardRows& rows, std::int64_t begin, std::int64_t end) {
  constexpr int height = 2;
  std::int64_t row = begin;
  for (; row + height <= end; row += height) backward_rows<T, layer, height>(rows, row);
  for (; row < end; ++row) backward_rows<T, layer, 1>(rows, row);
}

template <typename T>
void backward(const NormBackwardRows& rows, std::int64_t begin, std::int64_t end) {
  rows.layer ? backward_kind<T, true>(rows, begin, end) : backward_kind<T, false>(rows, begin, end);
}

void sum_parts(const float* partials, int parts, std::int64_t stride, float* out, bool accumulate, std::int64_t begin,
               std::int64_t end) {
  for_vectors(begin, end, [&](std::int64_t i, auto count) {
    Float total = accumulate ? load(out + i, count) : Float{};
    for (int p = 0; p < parts; ++p) total += load(partials + p * stride + i, count);
    store(out + i, total, count);
  });
}

constexpr NormKernels norm_kernels{forward<float>, forward<bf16>, backward<float>, backward<bf16>, sum_parts};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::NormKernels assay::cpu::KernelsFor<assay::ops::NormKernels, assay::cpu::Isa::ASSAY_ISA>::table =
    assay::ops::norm_kernels;
