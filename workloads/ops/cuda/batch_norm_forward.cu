// Batch norm, forward: one pass over x for its moments, a small kernel that combines the blocks' moments, one pass that
// writes y. Floor, in bytes: rows * channels * (2 x read, y written, residual read); one x less in evaluation.
#include "harness/device/cuda/reduce.h"
#include "workloads/ops/cuda/batch_norm_op.h"
#include "workloads/ops/cuda/own_kernels.h"

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = BatchNormRows::threads;
constexpr int resident = 3;      // blocks per multiprocessor
constexpr int unroll = 4;        // rows in flight per thread, for the moments
constexpr int rows_written = 2;  // when writing y: more would need too many registers

// Mean and sum of squared deviations of some values, merged as by Chan, Golub & LeVeque (1979).
struct Moments {
  float count;
  float mean;
  float squares;
};
__device__ __forceinline__ Moments joined(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (b.count == 0) return a;
  const float delta = b.mean - a.mean, share = b.count / count;
  return {count, fmaf(delta, share, a.mean), a.squares + fmaf(delta * delta, a.count * share, b.squares)};
}

// partials (blocks down, 2, channels): mean and sum of squared deviations of each block's rows.
template <typename T, int N>
__global__ void __launch_bounds__(threads, resident)
    batch_norm_moments(BatchNormRows all, const T* x, float* partials) {
  __shared__ float means[N][threads], squares[N][threads], counts[threads];
  const BatchNormShare<N> share(all);
  const int thread = static_cast<int>(threadIdx.x);
  const int rows = share.active ? share.count() : 0;
  // Sums of x minus the first row's: keeps precision if the mean is large compared with the deviation.
  Vector<float, N> origin{}, sum{}, square{};
  if (rows > 0) {
    const T* at = x + share.first * all.channels + share.channel;
    const std::int64_t step = share.down * all.channels;
    origin = load_wide<N>(at);
    int i = 0;
    const auto add = [&](const Packed<T, N>& row) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float off = widen(row[k]) - origin.lane[k];
        sum.lane[k] += off;
        square.lane[k] = fmaf(off, off, square.lane[k]);
      }
    };
    for (; i + unroll <= rows; i += unroll) {
      Packed<T, N> row[unroll];
#pragma unroll
      for (int u = 0; u < unroll; ++u) row[u] = load<N>(at + u * step);
      at += unroll * step;
#pragma unroll
      for (int u = 0; u < unroll; ++u) add(row[u]);
    }
    for (; i < rows; ++i, at += step) add(load<N>(at));
  }
  float count = static_cast<float>(rows);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const float off = rows > 0 ? sum.lane[k] / count : 0.0f;
    means[k][thread] = origin.lane[k] + off;
    squares[k][thread] = fmaf(-off, sum.lane[k], square.lane[k]);
  }
  counts[thread] = count;
  // Reduces the threads of a column: the upper half merges into the lower one.
  for (int half = share.down / 2; half > 0; half /= 2) {
    __syncthreads();
    if (share.row < half) {
      const int other = thread + half * all.across;
      const float more = counts[other];
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const Moments both =
            joined({count, means[k][thread], squares[k][thread]}, {more, means[k][other], squares[k][other]});
        means[k][thread] = both.mean;
        squares[k][thread] = both.squares;
      }
      counts[thread] = count += more;
    }
  }
  if (share.row != 0 || !share.active) return;
  float* to = partials + 2 * blockIdx.y * all.channels + share.channel;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    to[k] = means[k][thread];
    to[all.channels + k] = squares[k][thread];
  }
}

struct Statistics {
  double epsilon;
  double momentum;
  float* running_mean;  // null: not updated
  float* running_variance;
  float* mean;
  float* inverse_deviation;
};

// The batch's statistics from those of its blocks.
__global__ void __launch_bounds__(partial_threads)
    batch_norm_statistics(BatchNormRows all, const float* partials, Statistics out) {
  const std::int64_t channel = std::int64_t{blockIdx.x} * warp_threads + static_cast<int>(threadIdx.x) % warp_threads;
  const double rows = static_cast<double>(all.rows);
  // Relative to the first block's mean, which is close to the overall one.
  const double origin = channel < all.channels ? static_cast<double>(partials[channel]) : 0.0;
  const Two<double> sums = sum_of_partials(
      partials, static_cast<int>(all.blocks_down), all.channels, [&](int block, float mean, float squares) {
        const std::int64_t begin = block * all.rows_per_block;
        const double count = static_cast<double>(min(all.rows_per_block, all.rows - begin));
        const double off = static_cast<double>(mean) - origin;
        return Two<double>{count * off, static_cast<double>(squares) + count * off * off};
      });
  if (static_cast<int>(threadIdx.x) >= warp_threads || channel >= all.channels) return;
  const double off = sums.a / rows;
  const double spread = sums.b / rows - off * off, variance = spread < 0 ? 0 : spread;  // NaN stays
  const double mean = origin + off;
  out.mean[channel] = static_cast<float>(mean);
  out.inverse_deviation[channel] = static_cast<float>(1 / sqrt(variance + out.epsilon));
  if (!out.running_mean) return;
  const auto move = [&](float& value, double to) {
    value = static_cast<float>((1 - out.momentum) * static_cast<double>(value) + out.momentum * to);
  };
  move(out.running_mean[channel], mean);
  move(out.running_variance[channel], variance * rows / (rows - 1));
}

template <typename T>
struct Apply {
  const T* x;
  const T* residual;  // or null
  const float* mean;
  const float* inverse_deviation;  // or null: from the variance
  const float* variance;
  float epsilon;
  const float* scale;
  const float* shift;
  bool relu;
  T* y;
};

// Each block's rows from last to first: the caches still have the last rows of the previous pass.
template <typename T, int N>
__global__ void __launch_bounds__(threads, resident) batch_norm_apply(BatchNormRows all, Apply<T> p) {
  const BatchNormShare<N> share(all);
  const int rows = share.active ? share.count() : 0;
  if (rows == 0) return;
  Vector<float, N> mean, factor, shift;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const std::int64_t c = share.channel + k;
    mean.lane[k] = p.mean[c];
    const float inverse = p.inverse_deviation ? p.inverse_deviation[c] : 1.0f / sqrtf(p.variance[c] + p.epsilon);
    factor.lane[k] = batch_norm_factor(p.scale[c], inverse);
    shift.lane[k] = p.shift[c];
  }
  const std::int64_t step = share.down * all.channels;
  std::int64_t at = (share.first + std::int64_t{rows - 1} * share.down) * all.channels + share.channel;
  const auto write = [&](std::int64_t to, const Packed<T, N>& x, const Packed<T, N>& residual) {
    Vector<float, N> value;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      value.lane[k] = batch_norm_value(widen(x[k]), mean.lane[k], factor.lane[k], shift.lane[k]);
      if (p.residual) value.lane[k] += widen(residual[k]);
      if (p.relu) value.lane[k] = value.lane[k] < 0 ? 0.0f : value.lane[k];  // NaN stays
    }
    store_narrow(p.y + to, value);
  };
  int left = rows;
  for (; left >= rows_written; left -= rows_written, at -= rows_written * step) {
    Packed<T, N> x[rows_written], residual[rows_written];
#pragma unroll
    for (int u = 0; u < rows_written; ++u) {
      x[u] = load<N>(p.x + at - u * step);
      if (p.residual) residual[u] = load<N, Keep::no>(p.residual + at - u * step);
    }
#pragma unroll
    for (int u = 0; u < rows_written; ++u) write(at - u * step, x[u], residual[u]);
  }
  for (; left > 0; --left, at -= step) {
    Packed<T, N> residual{};
    if (p.residual) residual = load<N, Keep::no>(p.residual + at);
    write(at, load<N>(p.x + at), residual);
  }
}

class CudaBatchNormForward final : public CudaBatchNorm<BatchNormForward> {
 public:
  CudaBatchNormForward(Device& device, const BatchNormDesc& desc) : CudaBatchNorm(device, desc, resident) {}

  std::size_t workspace_bytes() const override { return d_.training ? partial_bytes() : 0; }

  void run(Stream& stream, const Args& args) override {
    run_kernels(aligned(args.x, d_.residual ? args.residual : nullptr, args.y),
                [&]<typename T, int N>(const BatchNormRows& rows) { enqueue<T, N>(rows, args, native(stream)); });
  }

 private:
  template <typename T, int N>
  void enqueue(const BatchNormRows& rows, const Args& args, cudaStream_t stream) const {
    if (d_.training) {
      auto* partials = static_cast<float*>(args.workspace);
      launch(batch_norm_moments<T, N>, rows.grid(), threads, 0, stream, rows, static_cast<const T*>(args.x), partials);
      launch(batch_norm_statistics, blocks_for(d_.channels, warp_threads), partial_threads, 0, stream, rows, partials,
             Statistics{.epsilon = d_.epsilon,
                        .momentum = d_.momentum,
                        .running_mean = args.update_running ? static_cast<float*>(args.running_mean) : nullptr,
                        .running_variance = static_cast<float*>(args.running_variance),
                        .mean = static_cast<float*>(args.saved_mean),
                        .inverse_deviation = static_cast<float*>(args.saved_inverse_deviation)});
    }
    const void* mean = d_.training ? args.saved_mean : args.running_mean;
    const void* inverse = d_.training ? args.saved_inverse_deviation : nullptr;
    launch(batch_norm_apply<T, N>, rows.grid(), threads, 0, stream, rows,
           Apply<T>{.x = static_cast<const T*>(args.x),
                    .residual = d_.residual ? static_cast<const T*>(args.residual) : nullptr,
                    .mean = static_cast<const float*>(mean),
                    .inverse_deviation = static_cast<const float*>(inverse),
                    .variance = static_cast<const float*>(args.running_variance),
                    .epsilon = static_cast<float>(d_.epsilon),
                    .scale = static_cast<const float*>(args.scale),
                    .shift = static_cast<const float*>(args.shift),
                    .relu = d_.relu,
                    .y = static_cast<T*>(args.y)});
  }
};

}  // namespace

std::unique_ptr<BatchNormForward> own_batch_norm_forward(Device& device, const BatchNormDesc& desc) {
  return std::make_unique<CudaBatchNormForward>(device, desc);
}

}  // namespace assay::ops
