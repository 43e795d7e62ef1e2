// GELU epilogues over blocks of a product while they are in the caches, and sums of rows and columns.
#include "workloads/ops/cpu/kernels/product_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/cpu/kernels/staged.h"
#include "workloads/ops/functors/activation.h"

namespace assay::ops {
namespace {

using namespace vector;

template <typename T, typename F>
void gelu(const float* z, void* aux, void* out, std::int64_t count) {
  Block values;
  for_blocks(0, count, [&](std::int64_t first, std::int64_t n) {
    T* to = static_cast<T*>(out) + first;
    T* kept = static_cast<T*>(aux) + first;
    const float* a = z + first;
    float* b = place_for(to, values.values);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) b[i] = F{}(a[i]);
    deliver(to, b, n);
    if (static_cast<const void*>(kept) != static_cast<const void*>(a))
      for_vectors<4>(0, n, [&](std::int64_t i, auto part) { store(kept + i, load(a + i, part), part); });
  });
}

template <typename T, typename F>
void gelu_gradient(const float* dy, const void* z, void* out, std::int64_t count) {
  Block in, values;
  for_blocks(0, count, [&](std::int64_t first, std::int64_t n) {
    T* to = static_cast<T*>(out) + first;
    const float* a = staged(static_cast<const T*>(z) + first, in.values, n);
    const float* g = dy + first;
    float* b = place_for(to, values.values);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) b[i] = g[i] * F{}(a[i]);
    deliver(to, b, n);
  });
}

// Rows are summed in chunks of this many before the chunks are added, which limits rounding errors.
constexpr std::int64_t tall = 64;

template <typename T>
void column_sums(const void* x, std::int64_t rows, std::int64_t stride, std::int64_t begin, std::int64_t end, bool add,
                 float* sums) {
  constexpr std::int64_t wide = 256;
  for (std::int64_t first = begin; first < end; first += wide) {
    const std::int64_t n = first + wide < end ? wide : end - first;
    float total[wide] = {}, part[wide];
    for (std::int64_t row = 0; row < rows; row += tall) {
      const std::int64_t last = row + tall < rows ? row + tall : rows;
      for (float& p : part) p = 0;
      for (std::int64_t r = row; r < last; ++r) {
        const T* from = static_cast<const T*>(x) + r * stride + first;
        for_vectors<4>(0, n,
                       [&](std::int64_t i, auto count) { store(part + i, load(part + i) + load(from + i, count)); });
      }
      for (std::int64_t i = 0; i < wide; i += lanes) store(total + i, load(total + i) + load(part + i));
    }
    for (std::int64_t i = 0; i < n; ++i) sums[first + i] = (add ? sums[first + i] : 0.0f) + total[i];
  }
}

template <typename T>
void row_sums(const void* x, std::int64_t columns, std::int64_t begin, std::int64_t end, bool add, float* sums) {
  for (std::int64_t row = begin; row < end; ++row) {
    const T* from = static_cast<const T*>(x) + row * columns;
    double total = 0;
    for (std::int64_t first = 0; first < columns; first += tall * lanes) {
      Float part[4] = {};
      const std::int64_t last = first + tall * lanes < columns ? first + tall * lanes : columns;
      for_vectors<4>(first, last, [&](std::int64_t i, auto count) { part[i / lanes % 4] += load(from + i, count); });
      total += static_cast<double>(vector::sum((part[0] + part[1]) + (part[2] + part[3])));
    }
    sums[row] = (add ? sums[row] : 0.0f) + static_cast<float>(total);
  }
}

template <typename T>
constexpr ProductKernels::Type kernels_of = {gelu<T, functors::GeluTanh>,
                                             gelu<T, functors::GeluErf>,
                                             gelu_gradient<T, functors::GeluTanhGradient>,
                                             gelu_gradient<T, functors::GeluErfGradient>,
                                             column_sums<T>,
                                             row_sums<T>};

constexpr ProductKernels product_kernels{kernels_of<float>, kernels_of<bf16>};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::ProductKernels assay::cpu::KernelsFor<assay::ops::ProductKernels, assay::cpu::Isa::ASSAY_ISA>::table =
    assay::ops::product_kernels;
