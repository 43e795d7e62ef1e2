// Pooling: a thread computes 16 bytes of channels of one output pixel (of four in the backward pass), so one thread
// sums each element in a fixed order, also in the backward pass. Floor, in bytes: x and y once each, and one byte per
// element of y for the index of the maximum.
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/own_kernels.h"

#include <cmath>

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 256;
constexpr std::int64_t largest_window = 256;  // an index into the window fits a byte

struct Pool {
  int h, w, p, q, window_h, window_w, stride, padding;
  std::int64_t channels;
};

// A thread's pixel and channels in images of `rows` x `columns`.
struct Pixel {
  std::int64_t image;
  int row, column;
  std::int64_t channel;
};
__device__ __forceinline__ Pixel pixel_of(std::int64_t thread, int rows, int columns, std::int64_t vectors, int width) {
  const Quotient pixel = divide(thread, vectors), row = divide(pixel.whole, columns), image = divide(row.whole, rows);
  return {image.whole, static_cast<int>(image.rest), static_cast<int>(row.rest), pixel.rest * width};
}
__device__ __forceinline__ std::int64_t this_thread() {
  return std::int64_t{blockIdx.x} * threads + static_cast<int>(threadIdx.x);
}

// The part of a window inside the image.
struct Window {
  __device__ Window(const Pool& d, int p, int q)
      : row(p * d.stride - d.padding),
        column(q * d.stride - d.padding),
        top(max(0, row)),
        bottom(min(d.h, row + d.window_h)),
        left(max(0, column)),
        right(min(d.w, column + d.window_w)) {}
  __device__ float inverse_count() const { return 1.0f / static_cast<float>((bottom - top) * (right - left)); }

  int row, column;  // of its corner, which may be outside
  int top, bottom, left, right;
};

template <typename T, int N>
__global__ void __launch_bounds__(threads)
    pool_maximum(Pool d, std::int64_t count, const T* x, T* y, unsigned char* saved) {
  if (this_thread() >= count) return;
  const Pixel at = pixel_of(this_thread(), d.p, d.q, d.channels / N, N);
  const Window window(d, at.row, at.column);
  Vector<float, N> most;
  Vector<int, N> place;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    most.lane[k] = -INFINITY;
    place.lane[k] = (window.top - window.row) * d.window_w + window.left - window.column;
  }
  for (int h = window.top; h < window.bottom; ++h) {
    const T* line = x + (at.image * d.h + h) * d.w * d.channels + at.channel;
#pragma unroll 3
    for (int w = window.left; w < window.right; ++w) {
      const Vector<float, N> value = load_wide<N>(line + w * d.channels);
      const int here = (h - window.row) * d.window_w + w - window.column;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        // The first of the largest, or the first NaN.
        const float mine = value.lane[k], best = most.lane[k];
        if (!(mine <= best) && best == best) {
          most.lane[k] = mine;
          place.lane[k] = here;
        }
      }
    }
  }
  Vector<unsigned char, N> bytes;
#pragma unroll
  for (int k = 0; k < N; ++k) bytes.lane[k] = static_cast<unsigned char>(place.lane[k]);
  store_narrow(y + this_thread() * N, most);
  store(saved + this_thread() * N, packed(bytes));
}

template <typename T, int N>
__global__ void __launch_bounds__(threads) pool_average(Pool d, std::int64_t count, const T* x, T* y) {
  if (this_thread() >= count) return;
  const Pixel at = pixel_of(this_thread(), d.p, d.q, d.channels / N, N);
  const Window window(d, at.row, at.column);
  Vector<float, N> sum{};
  for (int h = window.top; h < window.bottom; ++h) {
    const T* line = x + (at.image * d.h + h) * d.w * d.channels + at.channel;
#pragma unroll 4
    for (int w = window.left; w < window.right; ++w) {
      const Vector<float, N> value = load_wide<N>(line + w * d.channels);
#pragma unroll
      for (int k = 0; k < N; ++k) sum.lane[k] += value.lane[k];
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) sum.lane[k] *= window.inverse_count();
  store_narrow(y + this_thread() * N, sum);
}

// Gathers dx from the windows that contain the pixel: `saved` has the indices of the maxima; null: the average. A
// thread computes `cell` x `cell` neighbouring pixels, which share most of their windows: with 3 x 3 windows at stride
// 2 it reads four, while single pixels would read nine.
constexpr int cell = 2;
template <typename T, int N>
__global__ void __launch_bounds__(threads, 2)
    pool_gradient(Pool d, std::int64_t count, const T* dy, const unsigned char* saved, T* dx) {
  if (this_thread() >= count) return;
  const Pixel at = pixel_of(this_thread(), (d.h + cell - 1) / cell, (d.w + cell - 1) / cell, d.channels / N, N);
  const int row = at.row * cell, column = at.column * cell;
  // Windows [first, last] along one dimension.
  const auto first = [&](int place, int window) { return max(0, (place + d.padding - window + d.stride) / d.stride); };
  const auto last = [&](int place, int places, int windows) {
    return min(windows - 1, (min(place + cell, places) - 1 + d.padding) / d.stride);
  };
  const int top = first(row, d.window_h), bottom = last(row, d.h, d.p);
  const int left = first(column, d.window_w), right = last(column, d.w, d.q);
  Vector<float, N> sum[cell][cell] = {};
  const auto read = [&](int p, int q, Packed<T, N>& gradient, Packed<unsigned char, N>& place) {
    const std::int64_t from = ((at.image * d.p + p) * d.q + q) * d.channels + at.channel;
    gradient = load<N>(dy + from);
    if (saved) place = load<N>(saved + from);
  };
  const auto add = [&](int p, int q, const Packed<T, N>& gradient, const Packed<unsigned char, N>& place) {
    const Window window(d, p, q);
#pragma unroll
    for (int i = 0; i < cell; ++i)
#pragma unroll
      for (int j = 0; j < cell; ++j) {
        const int below = row + i - window.row, beside = column + j - window.column;
        if (below < 0 || below >= d.window_h || beside < 0 || beside >= d.window_w) continue;
        if (saved) {
          const int here = below * d.window_w + beside;
#pragma unroll
          for (int k = 0; k < N; ++k) sum[i][j].lane[k] += place[k] == here ? widen(gradient[k]) : 0.0f;
        } else {
          const float share = window.inverse_count();
#pragma unroll
          for (int k = 0; k < N; ++k) sum[i][j].lane[k] = fmaf(widen(gradient[k]), share, sum[i][j].lane[k]);
        }
      }
  };
  if (bottom - top < 2 && right - left < 2) {  // all at once
    Packed<T, N> gradient[2][2];
    Packed<unsigned char, N> place[2][2];
    const auto each = [&](auto visit) {
#pragma unroll
      for (int p = 0; p < 2; ++p)
#pragma unroll
        for (int q = 0; q < 2; ++q)
          if (top + p <= bottom && left + q <= right) visit(top + p, left + q, gradient[p][q], place[p][q]);
    };
    each(read);
    each(add);
  } else {
    for (int p = top; p <= bottom; ++p)
      for (int q = left; q <= right; ++q) {
        Packed<T, N> gradient;
        Packed<unsigned char, N> place;
        read(p, q, gradient, place);
        add(p, q, gradient, place);
      }
  }
#pragma unroll
  for (int i = 0; i < cell; ++i)
#pragma unroll
    for (int j = 0; j < cell; ++j)
      if (row + i < d.h && column + j < d.w)
        store_narrow(dx + ((at.image * d.h + row + i) * d.w + column + j) * d.channels + at.channel, sum[i][j]);
}

template <typename Base>
class CudaPool : public CudaOp<Base> {
 public:
  // One thread per vector of channels of each of `pixels`, or of cells of them.
  CudaPool(Device& device, const PoolDesc& desc, std::int64_t pixels)
      : CudaOp<Base>(device),
        d_(desc),
        pixels_(pixels),
        shape_{.h = static_cast<int>(desc.h),
               .w = static_cast<int>(desc.w),
               .p = static_cast<int>(desc.p()),
               .q = static_cast<int>(desc.q()),
               .window_h = static_cast<int>(desc.window_h),
               .window_w = static_cast<int>(desc.window_w),
               .stride = static_cast<int>(desc.stride),
               .padding = static_cast<int>(desc.padding),
               .channels = desc.c} {}

 protected:
  bool maximum() const { return d_.kind == PoolKind::maximum; }

  // Calls body.operator()<T, N>(): the element type, and how many elements each thread computes.
  template <typename Body>
  void run_kernels(bool is_aligned, const Body& body) const {
    with_type(d_.dtype, [&]<typename T>() {
      if (is_aligned && d_.c % lanes<T> == 0)
        body.template operator()<T, lanes<T>>();
      else
        body.template operator()<T, 1>();
    });
  }
  std::int64_t vectors(int width) const { return pixels_ * d_.c / width; }

  PoolDesc d_;
  std::int64_t pixels_;
  Pool shape_;
};

class CudaPoolForward final : public CudaPool<PoolForward> {
 public:
  CudaPoolForward(Device& device, const PoolDesc& d) : CudaPool(device, d, d.n * d.p() * d.q()) {}

  std::size_t saved_bytes() const override { return maximum() ? static_cast<std::size_t>(vectors(1)) : 0; }

  void run(Stream& stream, const Args& args) override {
    run_kernels(aligned(args.x, args.y, args.saved), [&]<typename T, int N>() {
      const auto* x = static_cast<const T*>(args.x);
      auto* y = static_cast<T*>(args.y);
      const std::int64_t count = vectors(N);
      if (maximum())
        launch(pool_maximum<T, N>, blocks_for(count, threads), threads, 0, native(stream), shape_, count, x, y,
               static_cast<unsigned char*>(args.saved));
      else
        launch(pool_average<T, N>, blocks_for(count, threads), threads, 0, native(stream), shape_, count, x, y);
    });
  }
};

class CudaPoolBackward final : public CudaPool<PoolBackward> {
 public:
  CudaPoolBackward(Device& device, const PoolDesc& d)
      : CudaPool(device, d, d.n * ((d.h + cell - 1) / cell) * ((d.w + cell - 1) / cell)) {}

  void run(Stream& stream, const Args& args) override {
    run_kernels(aligned(args.dy, args.dx, args.saved), [&]<typename T, int N>() {
      const std::int64_t count = vectors(N);
      launch(pool_gradient<T, N>, blocks_for(count, threads), threads, 0, native(stream), shape_, count,
             static_cast<const T*>(args.dy), maximum() ? static_cast<const unsigned char*>(args.saved) : nullptr,
             static_cast<T*>(args.dx));
    });
  }
};

std::string sizes(std::int64_t one, std::int64_t two) { return std::to_string(one) + " x " + std::to_string(two); }

}  // namespace

std::string own_pool_problem(const PoolDesc& d) {
  if (d.kind == PoolKind::maximum && d.window_h * d.window_w > largest_window)
    return "the cuda backend's maximum pooling takes windows of up to " + std::to_string(largest_window) +
           " pixels, not " + sizes(d.window_h, d.window_w);
  if (std::max({d.h, d.w, d.stride, d.padding, d.window_h, d.window_w}) > (1 << 24))
    return "the cuda backend's pooling takes images of up to 2^24 pixels per side, not " + sizes(d.h, d.w);
  return unless_f32_bf16_or_fp16("pooling", {d.dtype});
}

std::unique_ptr<PoolForward> own_pool_forward(Device& device, const PoolDesc& desc) {
  return std::make_unique<CudaPoolForward>(device, desc);
}

template <>
Made<PoolBackward> make_cuda(Device& device, const PoolDesc& desc) {
  return make_unless<PoolBackward, CudaPoolBackward>(own_pool_problem(desc), device, desc);
}

}  // namespace assay::ops
