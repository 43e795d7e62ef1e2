// Layer norm and RMS norm. A row is read once and kept in its block's registers; forward moves 2 x rows x columns
// elements (4 x with a residual), backward 3 x (4 x with dsum): that is the floor. Rows that do not fit the registers,
// or are not aligned to 16 bytes, use slower kernels.
#include "harness/device/cuda/reduce.h"
#include "workloads/ops/cuda/column_sums.h"
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"

namespace assay::ops {

namespace {

using namespace cuda;

template <typename T>
struct ForwardRows {
  const T* x;
  const T* residual;  // null: none
  T* sum;
  const float* weight;
  const float* bias;  // null: none
  T* y;
  float* mean;  // null: RMS norm
  float* inverse;
  std::int64_t rows;
  int columns;
  float epsilon;
};

constexpr int max_threads = 1024;  // per block, one vector per thread
constexpr int long_threads = 512;  // per block, `long_vectors` per thread
constexpr int long_vectors = 4;
constexpr int any_threads = 256;  // per block of the kernels for any row

// The variance sums squared differences from the mean, not squares: rows may be far from zero.
template <typename T, int V>
__global__ void __launch_bounds__(V == 1 ? max_threads : long_threads) norm_forward(ForwardRows<T> p) {
  constexpr int N = lanes<T>;
  __shared__ float scratch[warp_threads];
  const int vectors = p.columns / N;
  const float share = 1.0f / static_cast<float>(p.columns);
  for (std::int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const std::int64_t base = row * p.columns;
    const auto each = [&](auto visit) {
#pragma unroll
      for (int u = 0; u < V; ++u)
        if (const int at = static_cast<int>(threadIdx.x + u * blockDim.x); at < vectors) visit(u, at * N);
    };
    Packed<T, N> x[V], residual[V];
    each([&](int u, int c) { x[u] = load<N>(p.x + base + c); });
    if (p.residual) each([&](int u, int c) { residual[u] = load<N>(p.residual + base + c); });
    Vector<float, N> value[V];
    each([&](int u, int c) {
      value[u] = widened(x[u]);
      if (!p.residual) return;
#pragma unroll
      for (int k = 0; k < N; ++k) value[u].lane[k] += widen(residual[u][k]);
      const Packed<T, N> stored = narrowed<T>(value[u]);
      store(p.sum + base + c, stored);
      value[u] = widened(stored);
    });
    float mean = 0;
    if (p.mean) {
      float total = 0;
      each([&](int u, int) {
#pragma unroll
        for (int k = 0; k < N; ++k) total += value[u].lane[k];
      });
      mean = block_sum(total, scratch) * share;
    }
    float squares = 0;
    each([&](int u, int) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        value[u].lane[k] -= mean;
        squares += value[u].lane[k] * value[u].lane[k];
      }
    });
    const float inverse = rsqrtf(block_sum(squares, scratch) * share + p.epsilon);
    each([&](int u, int c) {
      const Vector<float, N> weight = load_wide<N>(p.weight + c);
#pragma unroll
      for (int k = 0; k < N; ++k) value[u].lane[k] *= weight.lane[k] * inverse;
      if (p.bias) {
        const Vector<float, N> bias = load_wide<N>(p.bias + c);
#pragma unroll
        for (int k = 0; k < N; ++k) value[u].lane[k] += bias.lane[k];
      }
      store_narrow(p.y + base + c, value[u]);
    });
    if (threadIdx.x == 0) {
      if (p.mean) p.mean[row] = mean;
      p.inverse[row] = inverse;
    }
  }
}

// Any number of columns, any alignment: reads the row three times, twice from the caches.
template <typename T>
__global__ void __launch_bounds__(any_threads) norm_forward_any(ForwardRows<T> p) {
  __shared__ float scratch[warp_threads];
  const float share = 1.0f / static_cast<float>(p.columns);
  for (std::int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const std::int64_t base = row * p.columns;
    const auto each = [&](auto visit) {
      for (int c = static_cast<int>(threadIdx.x); c < p.columns; c += any_threads) visit(c);
    };
    if (p.residual)
      each([&](int c) { p.sum[base + c] = narrow<T>(widen(p.x[base + c]) + widen(p.residual[base + c])); });
    const T* from = (p.residual ? p.sum : p.x) + base;  // a thread reads what it wrote itself
    float mean = 0;
    if (p.mean) {
      float total = 0;
      each([&](int c) { total += widen(from[c]); });
      mean = block_sum(total, scratch) * share;
    }
    float squares = 0;
    each([&](int c) {
      const float value = widen(from[c]) - mean;
      squares += value * value;
    });
    const float inverse = rsqrtf(block_sum(squares, scratch) * share + p.epsilon);
    each([&](int c) {
      const float value = (widen(from[c]) - mean) * inverse * p.weight[c];
      p.y[base + c] = narrow<T>(p.bias ? value + p.bias[c] : value);
    });
    if (threadIdx.x == 0) {
      if (p.mean) p.mean[row] = mean;
      p.inverse[row] = inverse;
    }
  }
}

template <typename T>
struct BackwardRows {
  const T* dy;
  const T* sum;
  const float* weight;
  const float* mean;  // null: RMS norm
  const float* inverse;
  const T* dsum;  // null: none
  T* dx;
  float* partials;  // (blocks, dweight and dbias, columns)
  std::int64_t rows;
  int columns;
};

constexpr int backward_threads = 512;

// Each block processes every gridDim.x-th row and keeps its part of the parameters' gradients in registers.
template <typename T, int V>
__global__ void __launch_bounds__(backward_threads) norm_backward(BackwardRows<T> p) {
  constexpr int N = lanes<T>;
  __shared__ Two<float> scratch[warp_threads];
  const int vectors = p.columns / N;
  const float share = 1.0f / static_cast<float>(p.columns);
  const auto each = [&](auto visit) {
#pragma unroll
    for (int u = 0; u < V; ++u)
      if (const int at = static_cast<int>(threadIdx.x + u * blockDim.x); at < vectors) visit(u, at * N);
  };
  Vector<float, N> dweight[V] = {}, dbias[V] = {};
  for (std::int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const std::int64_t base = row * p.columns;
    const float mean = p.mean ? p.mean[row] : 0.0f, inverse = p.inverse[row];
    Packed<T, N> dy[V], sum[V], dsum[V];
    each([&](int u, int c) {
      dy[u] = load<N>(p.dy + base + c);
      sum[u] = load<N>(p.sum + base + c);
      if (p.dsum) dsum[u] = load<N>(p.dsum + base + c);
    });
    Vector<float, N> gradient[V], normal[V];  // weight * dy, (sum - mean) * inverse
    Two<float> sums{};
    each([&](int u, int c) {
      const Vector<float, N> weight = load_wide<N>(p.weight + c);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float &g = gradient[u].lane[k], &h = normal[u].lane[k];
        g = widen(dy[u][k]);
        h = (widen(sum[u][k]) - mean) * inverse;
        dweight[u].lane[k] += g * h;
        dbias[u].lane[k] += g;
        g *= weight.lane[k];
        sums.a += g;
        sums.b += g * h;
      }
    });
    sums = block_sum(sums, scratch);
    const float mean_gradient = p.mean ? sums.a * share : 0.0f, mean_product = sums.b * share;
    each([&](int u, int c) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float& g = gradient[u].lane[k];
        g = inverse * (g - mean_gradient - normal[u].lane[k] * mean_product);
      }
      if (p.dsum) {
        const Vector<float, N> other = widened(dsum[u]);
#pragma unroll
        for (int k = 0; k < N; ++k) gradient[u].lane[k] += other.lane[k];
      }
      store_narrow(p.dx + base + c, gradient[u]);
    });
  }
  float* mine = p.partials + std::int64_t{blockIdx.x} * 2 * p.columns;
  each([&](int u, int c) {
    store_narrow(mine + c, dweight[u]);
    if (p.mean) store_narrow(mine + p.columns + c, dbias[u]);
  });
}

// Any number of columns, any alignment. Computes the parameters' gradients first, since dx may be dy: each block sums
// 32 columns over its part of the rows.
constexpr int any_groups = any_threads / warp_threads;
template <typename T>
__global__ void __launch_bounds__(any_threads) norm_backward_parameters(BackwardRows<T> p) {
  __shared__ float shared[2][any_groups][warp_threads];
  const int lane = static_cast<int>(threadIdx.x) % warp_threads, group = static_cast<int>(threadIdx.x) / warp_threads;
  const std::int64_t column = std::int64_t{blockIdx.x} * warp_threads + lane;
  float dweight = 0, dbias = 0;
  if (column < p.columns)
    for (std::int64_t row = std::int64_t{blockIdx.y} * any_groups + group; row < p.rows;
         row += std::int64_t{gridDim.y} * any_groups) {
      const float mean = p.mean ? p.mean[row] : 0.0f, gradient = widen(p.dy[row * p.columns + column]);
      dweight += gradient * ((widen(p.sum[row * p.columns + column]) - mean) * p.inverse[row]);
      dbias += gradient;
    }
  shared[0][group][lane] = dweight;
  shared[1][group][lane] = dbias;
  __syncthreads();
  if (group > 1 || column >= p.columns) return;
  float total = 0;
#pragma unroll
  for (int g = 0; g < any_groups; ++g) total += shared[group][g][lane];
  p.partials[(std::int64_t{blockIdx.y} * 2 + group) * p.columns + column] = total;
}

template <typename T>
__global__ void __launch_bounds__(any_threads) norm_backward_any(BackwardRows<T> p) {
  __shared__ Two<float> scratch[warp_threads];
  const float share = 1.0f / static_cast<float>(p.columns);
  for (std::int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const std::int64_t base = row * p.columns;
    const float mean = p.mean ? p.mean[row] : 0.0f, inverse = p.inverse[row];
    const auto gradient = [&](int c) { return widen(p.dy[base + c]) * p.weight[c]; };
    const auto normal = [&](int c) { return (widen(p.sum[base + c]) - mean) * inverse; };
    Two<float> sums{};
    for (int c = static_cast<int>(threadIdx.x); c < p.columns; c += any_threads) {
      sums.a += gradient(c);
      sums.b += gradient(c) * normal(c);
    }
    sums = block_sum(sums, scratch);
    const float mean_gradient = p.mean ? sums.a * share : 0.0f, mean_product = sums.b * share;
    for (int c = static_cast<int>(threadIdx.x); c < p.columns; c += any_threads) {
      const float value = inverse * (gradient(c) - mean_gradient - normal(c) * mean_product);
      p.dx[base + c] = narrow<T>(p.dsum ? value + widen(p.dsum[base + c]) : value);
    }
  }
}

int vectors_of(const NormDesc& d) {
  const auto n = static_cast<std::int64_t>(16 / size_of(d.dtype));
  return d.columns % n == 0 && d.columns / n < (1 << 20) ? static_cast<int>(d.columns / n) : 0;
}
// Threads of a block for `vectors` vectors at `each` per thread.
unsigned threads_for(int vectors, int each) {
  return static_cast<unsigned>((vectors + each - 1) / each + warp_threads - 1) / warp_threads * warp_threads;
}

class CudaNormForward final : public CudaOp<NormForward> {
 public:
  CudaNormForward(Device& device, const NormDesc& desc) : CudaOp(device), d_(desc) {}

  void run(Stream& stream, const Args& args) override {
    with_type(d_.dtype, [&]<typename T>() { enqueue<T>(*this, args, native(stream)); });
  }

 private:
  template <typename T>
  static void enqueue(const CudaNormForward& op, const Args& args, cudaStream_t stream) {
    const NormDesc& d = op.d_;
    const bool layer = d.kind == NormKind::layer;
    const ForwardRows<T> rows{.x = static_cast<const T*>(args.x),
                              .residual = d.residual ? static_cast<const T*>(args.residual) : nullptr,
                              .sum = d.residual ? static_cast<T*>(args.sum) : nullptr,
                              .weight = static_cast<const float*>(args.weight),
                              .bias = layer && d.bias ? static_cast<const float*>(args.bias) : nullptr,
                              .y = static_cast<T*>(args.y),
                              .mean = layer ? static_cast<float*>(args.saved_mean) : nullptr,
                              .inverse = static_cast<float*>(args.saved_inverse_deviation),
                              .rows = d.rows,
                              .columns = static_cast<int>(d.columns),
                              .epsilon = static_cast<float>(d.epsilon)};
    const unsigned blocks = blocks_for(d.rows, 1, std::int64_t{64} * op.units());
    const int vectors = aligned(rows.x, rows.residual, rows.sum, rows.weight, rows.bias, rows.y) ? vectors_of(d) : 0;
    if (vectors > 0 && vectors <= max_threads)
      cuda::launch(norm_forward<T, 1>, blocks, threads_for(vectors, 1), 0, stream, rows);
    else if (vectors > 0 && vectors <= long_vectors * long_threads)
      cuda::launch(norm_forward<T, long_vectors>, blocks, threads_for(vectors, long_vectors), 0, stream, rows);
    else
      cuda::launch(norm_forward_any<T>, blocks, any_threads, 0, stream, rows);
  }

  NormDesc d_;
};

class CudaNormBackward final : public CudaOp<NormBackward> {
 public:
  CudaNormBackward(Device& device, const NormDesc& desc) : CudaOp(device), d_(desc) {}

  // (blocks, dweight and dbias, columns) f32.
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(max_parts() * 2 * d_.columns) * sizeof(float);
  }

  void run(Stream& stream, const Args& args) override {
    with_type(d_.dtype, [&]<typename T>() { enqueue<T>(*this, args, native(stream)); });
  }

 private:
  static constexpr int max_vectors = 2;

  static int each_of(int vectors) { return vectors <= backward_threads ? 1 : max_vectors; }
  static bool fits(int vectors) { return vectors > 0 && vectors <= max_vectors * backward_threads; }
  // Enough blocks to fill the GPU, few enough that their partial sums cost little compared with the rows.
  std::int64_t fast_blocks() const {
    const int vectors = vectors_of(d_);
    const unsigned threads = threads_for(vectors, each_of(vectors));
    return blocks_for(d_.rows, 1, std::int64_t{units()} * std::max(1u, 1024 / threads));
  }
  std::int64_t any_parts() const { return blocks_for(d_.rows, any_groups * 16, 256); }
  std::int64_t max_parts() const { return fits(vectors_of(d_)) ? std::max(fast_blocks(), any_parts()) : any_parts(); }

  template <typename T>
  static void enqueue(const CudaNormBackward& op, const Args& args, cudaStream_t stream) {
    const NormDesc& d = op.d_;
    const bool layer = d.kind == NormKind::layer;
    const BackwardRows<T> rows{.dy = static_cast<const T*>(args.dy),
                               .sum = static_cast<const T*>(args.sum),
                               .weight = static_cast<const float*>(args.weight),
                               .mean = layer ? static_cast<const float*>(args.saved_mean) : nullptr,
                               .inverse = static_cast<const float*>(args.saved_inverse_deviation),
                               .dsum = static_cast<const T*>(args.dsum),
                               .dx = static_cast<T*>(args.dx),
                               .partials = static_cast<float*>(args.workspace),
                               .rows = d.rows,
                               .columns = static_cast<int>(d.columns)};
    const int vectors = aligned(rows.dy, rows.sum, rows.weight, rows.dsum, rows.dx, rows.partials) ? vectors_of(d) : 0;
    std::int64_t parts = 0;
    if (fits(vectors)) {
      parts = op.fast_blocks();
      const int each = each_of(vectors);
      cuda::launch(each == 1 ? norm_backward<T, 1> : norm_backward<T, max_vectors>, static_cast<unsigned>(parts),
                   threads_for(vectors, each), 0, stream, rows);
    } else {
      parts = op.any_parts();
      const dim3 grid(blocks_for(d.columns, warp_threads), static_cast<unsigned>(parts));
      cuda::launch(norm_backward_parameters<T>, grid, any_threads, 0, stream, rows);
      cuda::launch(norm_backward_any<T>, blocks_for(d.rows, 1, std::int64_t{64} * op.units()), any_threads, 0, stream,
                   rows);
    }
    enqueue_column_sums({.partials = rows.partials,
                         .parts = parts,
                         .row_stride = 2 * d.columns,
                         .columns = d.columns,
                         .piece_stride = d.columns,
                         .first = static_cast<float*>(args.dweight),
                         .second = layer && d.bias ? static_cast<float*>(args.dbias) : nullptr,
                         .accumulate = d.accumulate},
                        stream);
  }

  NormDesc d_;
};

std::string problem(const NormDesc& d) {
  if (d.columns > (1 << 30))
    return "the cuda backend's norm takes up to 2^30 columns, not " + std::to_string(d.columns);
  return unless_f32_bf16_or_fp16("norm", {d.dtype});
}

}  // namespace

template <>
Made<NormForward> make_cuda(Device& device, const NormDesc& desc) {
  return make_unless<NormForward, CudaNormForward>(problem(desc), device, desc);
}

template <>
Made<NormBackward> make_cuda(Device& device, const NormDesc& desc) {
  return make_unless<NormBackward, CudaNormBackward>(problem(desc), device, desc);
}

}  // namespace assay::ops
