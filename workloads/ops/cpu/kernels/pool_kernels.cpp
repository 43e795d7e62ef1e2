// Pooling, a vector of channels at a time. Each input pixel gathers its gradient, so that threads need not synchronise
// and the order of sums is fixed.
#include "workloads/ops/cpu/kernels/pool_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "harness/device/cpu/vector/vector.h"

namespace assay::ops {

namespace {

using namespace vector;

using Bytes = std::uint8_t __attribute__((vector_size(lanes)));

std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// Rows or columns [begin, end).
struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};
// The pixels, out of `size`, that window `i` covers.
Range inside(std::int64_t i, std::int64_t window, std::int64_t size, const PoolDesc& d) {
  const std::int64_t first = i * d.stride - d.padding;
  return {larger(0, first), smaller(size, first + window)};
}
// The windows, out of `count`, that cover pixel `i`.
Range windows(std::int64_t i, std::int64_t window, std::int64_t count, const PoolDesc& d) {
  const std::int64_t last = i + d.padding, before = last - window;  // the last window that starts too early
  return {before < 0 ? 0 : before / d.stride + 1, smaller(count, last / d.stride + 1)};
}

inline void store_bytes(unsigned char* to, Int value, Full) {
  const Bytes bytes = __builtin_convertvector(value, Bytes);
  __builtin_memcpy(to, &bytes, sizeof bytes);
}
inline void store_bytes(unsigned char* to, Int value, int count) {
  for (int i = 0; i < count; ++i) to[i] = static_cast<unsigned char>(value[i]);
}
inline Int load_bytes(const unsigned char* from, Full) {
  Bytes bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, Int);
}
inline Int load_bytes(const unsigned char* from, int count) {
  Int value{};
  for (int i = 0; i < count; ++i) value[i] = from[i];
  return value;
}

template <typename T>
void maximum_forward(const PoolRows& rows, std::int64_t begin, std::int64_t end) {
  const PoolDesc& d = rows.desc;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* image = static_cast<const T*>(rows.from) + row / rows.p * d.h * d.w * d.c;
    const Range tall = inside(row % rows.p, d.window_h, d.h, d);
    const std::int64_t top = row % rows.p * d.stride - d.padding;
    for (std::int64_t q = 0; q < rows.q; ++q) {
      const Range wide = inside(q, d.window_w, d.w, d);
      const std::int64_t left = q * d.stride - d.padding, out = (row * rows.q + q) * d.c;
      for_vectors(0, d.c, [&](std::int64_t c, auto count) {
        Float best = load(image + (tall.begin * d.w + wide.begin) * d.c + c, count);
        Int place = Int{} + static_cast<int>((tall.begin - top) * d.window_w + wide.begin - left);
        for (std::int64_t h = tall.begin; h < tall.end; ++h)
          for (std::int64_t w = wide.begin; w < wide.end; ++w) {
            const Float value = load(image + (h * d.w + w) * d.c + c, count);
            // Larger, or the first NaN.
            const Int better = ~(value <= best) & (best == best);
            best = better ? value : best;
            place = better ? Int{} + static_cast<int>((h - top) * d.window_w + w - left) : place;
          }
        store(static_cast<T*>(rows.to) + out + c, best, count);
        store_bytes(rows.saved + out + c, place, count);
      });
    }
  }
}

template <typename T>
void maximum_backward(const PoolRows& rows, std::int64_t begin, std::int64_t end) {
  const PoolDesc& d = rows.desc;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t n = row / d.h, h = row % d.h;
    const Range tall = windows(h, d.window_h, rows.p, d);
    for (std::int64_t w = 0; w < d.w; ++w) {
      const Range wide = windows(w, d.window_w, rows.q, d);
      for_vectors(0, d.c, [&](std::int64_t c, auto count) {
        Float sum{};
        for (std::int64_t p = tall.begin; p < tall.end; ++p)
          for (std::int64_t q = wide.begin; q < wide.end; ++q) {
            const std::int64_t at = ((n * rows.p + p) * rows.q + q) * d.c + c;
            const std::int64_t place = (h + d.padding - p * d.stride) * d.window_w + w + d.padding - q * d.stride;
            const Float dy = load(static_cast<const T*>(rows.from) + at, count);
            sum += load_bytes(rows.saved + at, count) == static_cast<int>(place) ? dy : Float{};
          }
        store(static_cast<T*>(rows.to) + (row * d.w + w) * d.c + c, sum, count);
      });
    }
  }
}

template <typename T>
void average_forward(const PoolRows& rows, std::int64_t begin, std::int64_t end) {
  const PoolDesc& d = rows.desc;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* image = static_cast<const T*>(rows.from) + row / rows.p * d.h * d.w * d.c;
    const Range tall = inside(row % rows.p, d.window_h, d.h, d);
    for (std::int64_t q = 0; q < rows.q; ++q) {
      const Range wide = inside(q, d.window_w, d.w, d);
      const float share = 1.0f / static_cast<float>(tall.size() * wide.size());
      for_vectors(0, d.c, [&](std::int64_t c, auto count) {
        Float sum{};
        for (std::int64_t h = tall.begin; h < tall.end; ++h)
          for (std::int64_t w = wide.begin; w < wide.end; ++w) sum += load(image + (h * d.w + w) * d.c + c, count);
        store(static_cast<T*>(rows.to) + (row * rows.q + q) * d.c + c, sum * share, count);
      });
    }
  }
}

template <typename T>
void average_backward(const PoolRows& rows, std::int64_t begin, std::int64_t end) {
  const PoolDesc& d = rows.desc;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t n = row / d.h;
    const Range tall = windows(row % d.h, d.window_h, rows.p, d);
    for (std::int64_t w = 0; w < d.w; ++w) {
      const Range wide = windows(w, d.window_w, rows.q, d);
      for_vectors(0, d.c, [&](std::int64_t c, auto count) {
        Float sum{};
        for (std::int64_t p = tall.begin; p < tall.end; ++p)
          for (std::int64_t q = wide.begin; q < wide.end; ++q) {
            const std::int64_t pixels = inside(p, d.window_h, d.h, d).size() * inside(q, d.window_w, d.w, d).size();
            const T* dy = static_cast<const T*>(rows.from) + ((n * rows.p + p) * rows.q + q) * d.c + c;
            sum += load(dy, count) * (1.0f / static_cast<float>(pixels));
          }
        store(static_cast<T*>(rows.to) + (row * d.w + w) * d.c + c, sum, count);
      });
    }
  }
}

template <typename T>
constexpr PoolKernels::Typed typed{maximum_forward<T>, maximum_backward<T>, average_forward<T>, average_backward<T>};
constexpr PoolKernels pool_kernels{typed<float>, typed<bf16>};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::PoolKernels assay::cpu::KernelsFor<assay::ops::PoolKernels, assay::cpu::Isa::ASSAY_ISA>::table =
    assay::ops::pool_kernels;
