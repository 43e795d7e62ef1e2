// Batch norm, backward: one pass for the sums over the gradient behind ReLU (which also writes the residual's
// gradient), a small kernel that adds the blocks' sums, one pass that writes dx. If the shift is known and nothing else
// was added, ReLU's mask is computed from x, so y is not read. Floor, in bytes: rows * channels * (2 x dy, 2 x x, dx; y
// twice if needed; with a residual dy, dy_other and y once, and dresidual twice).
#include "harness/device/cuda/reduce.h"
#include "workloads/ops/cuda/batch_norm_op.h"
#include "workloads/ops/cuda/own_kernels.h"

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = BatchNormRows::threads;
constexpr int resident = 2;  // blocks per multiprocessor

// Rows in flight per thread. `lean` kernels read only dy and x.
template <bool lean>
constexpr int unroll_of = lean ? 4 : 2;

template <typename T>
struct Gradient {
  const T* dy;
  const T* other;  // added to dy; or null
  const T* x;
  const T* y;          // ReLU's mask is y > 0; or null
  const float* shift;  // the mask is normalised x > 0; or null
  const float* mean;
  const float* scale;
  const float* inverse_deviation;
};

// The constants of a thread's channels.
template <int N>
struct Constants {
  Vector<float, N> mean, factor, shift;
};
template <int N, typename T>
__device__ __forceinline__ Constants<N> constants(const Gradient<T>& p, std::int64_t channel) {
  Constants<N> c;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    c.mean.lane[k] = p.mean[channel + k];
    c.factor.lane[k] = batch_norm_factor(p.scale[channel + k], p.inverse_deviation[channel + k]);
    c.shift.lane[k] = p.shift ? p.shift[channel + k] : 0.0f;
  }
  return c;
}

// A thread's elements of one row, as stored in memory.
template <typename T, int N, bool lean>
struct Row {
  Packed<T, N> dy, x, other, y;

  template <Keep keep>
  __device__ __forceinline__ void read(const Gradient<T>& p, std::int64_t at) {
    dy = load<N, keep>(p.dy + at);
    x = load<N, keep>(p.x + at);
    if constexpr (lean) return;
    if (p.other) other = load<N, keep>(p.other + at);
    if (p.y) y = load<N, keep>(p.y + at);
  }
  // The gradient behind ReLU.
  __device__ __forceinline__ float gradient(const Gradient<T>& p, const Constants<N>& c, int k) const {
    float g = widen(dy[k]);
    if (!lean && p.other) g += widen(other[k]);
    if (!lean && p.y) return widen(y[k]) > 0 ? g : 0.0f;
    if (p.shift) return batch_norm_value(widen(x[k]), c.mean.lane[k], c.factor.lane[k], c.shift.lane[k]) > 0 ? g : 0.0f;
    return g;
  }
};

// partials (blocks down, 2, channels): sums of g and of g (x - mean) over each block's rows. dresidual: g, or null.
template <typename T, bool lean, int N>
__global__ void __launch_bounds__(threads, resident)
    batch_norm_sums(BatchNormRows all, Gradient<T> p, T* dresidual, float* partials) {
  constexpr int unroll = unroll_of<lean>;
  __shared__ float sums[N][threads], products[N][threads];
  const BatchNormShare<N> share(all);
  const int thread = static_cast<int>(threadIdx.x);
  const int rows = share.active ? share.count() : 0;
  Vector<float, N> sum{}, product{};
  if (rows > 0) {
    const Constants<N> c = constants<N>(p, share.channel);
    const std::int64_t step = share.down * all.channels;
    std::int64_t at = share.first * all.channels + share.channel;
    const auto add = [&](std::int64_t to, const Row<T, N, lean>& row) {
      Vector<float, N> gradient;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float g = gradient.lane[k] = row.gradient(p, c, k);
        sum.lane[k] += g;
        product.lane[k] = fmaf(g, widen(row.x[k]) - c.mean.lane[k], product.lane[k]);
      }
      if (dresidual) store_narrow(dresidual + to, gradient);
    };
    int i = 0;
    for (; i + unroll <= rows; i += unroll, at += unroll * step) {
      Row<T, N, lean> row[unroll];
#pragma unroll
      for (int u = 0; u < unroll; ++u) row[u].template read<Keep::yes>(p, at + u * step);
#pragma unroll
      for (int u = 0; u < unroll; ++u) add(at + u * step, row[u]);
    }
    for (; i < rows; ++i, at += step) {
      Row<T, N, lean> row;
      row.template read<Keep::yes>(p, at);
      add(at, row);
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) {
    sums[k][thread] = sum.lane[k];
    products[k][thread] = product.lane[k];
  }
  for (int half = share.down / 2; half > 0; half /= 2) {
    __syncthreads();
    if (share.row < half) {
      const int other = thread + half * all.across;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        sums[k][thread] += sums[k][other];
        products[k][thread] += products[k][other];
      }
    }
  }
  if (share.row != 0 || !share.active) return;
  float* to = partials + 2 * blockIdx.y * all.channels + share.channel;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    to[k] = sums[k][thread];
    to[all.channels + k] = products[k][thread];
  }
}

struct Parameters {
  const float* scale;
  const float* inverse_deviation;
  float* dscale;
  float* dshift;
  bool accumulate;
  float* slope;  // of x - mean in dx
  float* offset;
};

// dx = factor (g - sum(g) / n - (x - mean) inverse^2 sum(g (x - mean)) / n)
__global__ void __launch_bounds__(partial_threads)
    batch_norm_parameters(BatchNormRows all, const float* partials, Parameters out) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * warp_threads + static_cast<int>(threadIdx.x) % warp_threads;
  const Two<double> sums =
      sum_of_partials(partials, static_cast<int>(all.blocks_down), all.channels, [](int, float sum, float product) {
        return Two<double>{static_cast<double>(sum), static_cast<double>(product)};
      });
  if (static_cast<int>(threadIdx.x) >= warp_threads || channel >= all.channels) return;
  const double inverse = static_cast<double>(out.inverse_deviation[channel]);
  const double factor = static_cast<double>(out.scale[channel]) * inverse, rows = static_cast<double>(all.rows);
  out.slope[channel] = static_cast<float>(-factor * inverse * inverse * sums.b / rows);
  out.offset[channel] = static_cast<float>(-factor * sums.a / rows);
  const auto put = [&](float& to, double value) {
    to = static_cast<float>(out.accumulate ? static_cast<double>(to) + value : value);
  };
  put(out.dscale[channel], sums.b * inverse);
  put(out.dshift[channel], sums.a);
}

// Each block's rows from last to first: the caches still have the last rows of the previous pass.
template <typename T, bool lean, int N>
__global__ void __launch_bounds__(threads, resident)
    batch_norm_input(BatchNormRows all, Gradient<T> p, const float* slopes, const float* offsets, T* dx) {
  constexpr int unroll = unroll_of<lean>;
  const BatchNormShare<N> share(all);
  const int rows = share.active ? share.count() : 0;
  if (rows == 0) return;
  const Constants<N> c = constants<N>(p, share.channel);
  Vector<float, N> slope, offset;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    slope.lane[k] = slopes[share.channel + k];
    offset.lane[k] = offsets[share.channel + k];
  }
  const std::int64_t step = share.down * all.channels;
  std::int64_t at = (share.first + std::int64_t{rows - 1} * share.down) * all.channels + share.channel;
  const auto write = [&](std::int64_t to, const Row<T, N, lean>& row) {
    Vector<float, N> value;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float g = row.gradient(p, c, k), off = widen(row.x[k]) - c.mean.lane[k];
      value.lane[k] = fmaf(c.factor.lane[k], g, fmaf(slope.lane[k], off, offset.lane[k]));
    }
    store_narrow(dx + to, value);
  };
  int left = rows;
  for (; left >= unroll; left -= unroll, at -= unroll * step) {
    Row<T, N, lean> row[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) row[u].template read<Keep::no>(p, at - u * step);
#pragma unroll
    for (int u = 0; u < unroll; ++u) write(at - u * step, row[u]);
  }
  for (; left > 0; --left, at -= step) {
    Row<T, N, lean> row;
    row.template read<Keep::no>(p, at);
    write(at, row);
  }
}

class CudaBatchNormBackward final : public CudaBatchNorm<BatchNormBackward> {
 public:
  CudaBatchNormBackward(Device& device, const BatchNormDesc& desc) : CudaBatchNorm(device, desc, resident) {}

  // slope (channels), offset (channels), partial sums
  std::size_t workspace_bytes() const override {
    return 2 * static_cast<std::size_t>(d_.channels) * sizeof(float) + partial_bytes();
  }

  void run(Stream& stream, const Args& args) override {
    run_kernels(aligned(args.dy, args.dy_other, args.x, args.y, args.dx, args.dresidual),
                [&]<typename T, int N>(const BatchNormRows& rows) { enqueue<T, N>(rows, args, native(stream)); });
  }

 private:
  template <typename T, int N>
  void enqueue(const BatchNormRows& rows, const Args& args, cudaStream_t stream) const {
    const bool from_x = d_.relu && !d_.residual && args.shift;
    Gradient<T> gradient{.dy = static_cast<const T*>(args.dy),
                         .other = static_cast<const T*>(args.dy_other),
                         .x = static_cast<const T*>(args.x),
                         .y = d_.relu && !from_x ? static_cast<const T*>(args.y) : nullptr,
                         .shift = from_x ? static_cast<const float*>(args.shift) : nullptr,
                         .mean = static_cast<const float*>(args.saved_mean),
                         .scale = static_cast<const float*>(args.scale),
                         .inverse_deviation = static_cast<const float*>(args.saved_inverse_deviation)};
    T* dresidual = d_.residual ? static_cast<T*>(args.dresidual) : nullptr;
    auto* slope = static_cast<float*>(args.workspace);
    float* offset = slope + d_.channels;
    float* partials = offset + d_.channels;
    const auto lean = [&] { return !gradient.other && !gradient.y; };
    launch(lean() ? batch_norm_sums<T, true, N> : batch_norm_sums<T, false, N>, rows.grid(), threads, 0, stream, rows,
           gradient, dresidual, partials);
    launch(batch_norm_parameters, blocks_for(d_.channels, warp_threads), partial_threads, 0, stream, rows, partials,
           Parameters{.scale = gradient.scale,
                      .inverse_deviation = gradient.inverse_deviation,
                      .dscale = static_cast<float*>(args.dscale),
                      .dshift = static_cast<float*>(args.dshift),
                      .accumulate = d_.accumulate,
                      .slope = slope,
                      .offset = offset});
    if (dresidual) {  // the gradient behind ReLU: one array instead of three
      gradient.dy = dresidual;
      gradient.other = nullptr;
      gradient.y = nullptr;
    }
    launch(lean() ? batch_norm_input<T, true, N> : batch_norm_input<T, false, N>, rows.grid(), threads, 0, stream, rows,
           gradient, slope, offset, static_cast<T*>(args.dx));
  }
};

}  // namespace

std::unique_ptr<BatchNormBackward> own_batch_norm_backward(Device& device, const BatchNormDesc& desc) {
  return std::make_unique<CudaBatchNormBackward>(device, desc);
}

}  // namespace assay::ops
