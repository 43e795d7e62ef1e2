// The norm of all gradients, and its effect on the step's state. Reads each gradient once: count x its size in bytes is
// the floor. Sums squares in double (the square of a finite f32 may overflow), which data-centre GPUs add at half the
// speed of float: still far faster than memory.
#include "harness/device/cuda/reduce.h"
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 256;
constexpr int unroll = 4;  // vectors in flight per thread

// The sum of thread `me` of `all` that share the elements.
template <typename T>
__device__ __forceinline__ double thread_sum(const T* gradient, std::int64_t vectors, std::int64_t count,
                                             std::int64_t me, std::int64_t all) {
  constexpr int N = lanes<T>;
  double sum[unroll] = {};  // separate sums, so that additions are independent
  for (std::int64_t begin = me; begin < vectors; begin += unroll * all) {
    Packed<T, N> in[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (const std::int64_t v = begin + u * all; v < vectors) in[u] = load<N>(gradient + v * N);
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (begin + u * all < vectors) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const auto value = static_cast<double>(widen(in[u][k]));
          sum[u] = fma(value, value, sum[u]);
        }
      }
  }
  for (std::int64_t i = vectors * N + me; i < count; i += all) {
    const auto value = static_cast<double>(widen(gradient[i]));
    sum[0] = fma(value, value, sum[0]);
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// One sum per block of threads.
template <typename T>
__global__ void __launch_bounds__(threads)
    square_sums(const T* gradient, std::int64_t vectors, std::int64_t count, double* sums) {
  __shared__ double scratch[warp_threads];
  const std::int64_t me = std::int64_t{blockIdx.x} * threads + threadIdx.x, all = std::int64_t{gridDim.x} * threads;
  const double total = block_sum(thread_sum(gradient, vectors, count, me, all), scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// One sum per piece, by a block of threads each.
template <typename T>
__global__ void __launch_bounds__(threads)
    piece_sums(const T* gradient, bool in_vectors, const GradientNormDesc::Piece* pieces, double* sums) {
  __shared__ double scratch[warp_threads];
  const GradientNormDesc::Piece piece = pieces[blockIdx.x];
  double sum = 0;
  if (piece.held) {
    const std::int64_t vectors = in_vectors && piece.begin % lanes<T> == 0 ? piece.count / lanes<T> : 0;
    sum = thread_sum(gradient + piece.begin, vectors, piece.count, threadIdx.x, threads);
  }
  const double total = block_sum(sum, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void __launch_bounds__(threads)
    finish_norm(const double* sums, int blocks, StepState* state, const std::int64_t* valid, std::int64_t expected) {
  __shared__ double scratch[warp_threads];
  double sum = 0;
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += threads) sum += sums[b];
  sum = block_sum(sum, scratch);
  if (threadIdx.x > 0) return;
  // As gradients_scale() computes it.
  const float counted = valid ? static_cast<float>(static_cast<double>(state->loss_scale) *
                                                   (static_cast<double>(*valid) / static_cast<double>(expected)))
                              : state->loss_scale;
  const auto scale = static_cast<double>(counted), limit = static_cast<double>(state->max_norm);
  const double norm = sqrt(sum) / scale;
  state->found_infinity = isfinite(sum) && scale != 0 ? 0 : 1;
  state->norm = static_cast<float>(norm);
  const double clip = limit > 0 ? fmin(1.0, limit / (norm + 1e-6)) : 1.0;
  state->coefficient = static_cast<float>(clip / scale);
}

class CudaGradientNorm final : public CudaOp<GradientNorm> {
 public:
  CudaGradientNorm(Device& device, const GradientNormDesc& desc)
      : CudaOp(device),
        d_(desc),
        blocks_(blocks_for(desc.count, threads * unroll * std::int64_t{8}, std::int64_t{4} * units())) {
    if (desc.pieces.empty()) return;
    const std::vector<GradientNormDesc::Piece> pieces = square_sum_blocks(desc);
    blocks_ = static_cast<unsigned>(pieces.size());
    pieces_ = device.allocate(pieces.size() * sizeof(pieces[0]));
    const auto stream = device.make_stream();
    device.copy(pieces_.data(), pieces.data(), pieces_.bytes(), *stream);
    stream->synchronize();
  }

  std::int64_t sums() const override { return blocks_; }
  std::size_t workspace_bytes() const override { return blocks_ * sizeof(double); }

  void sum(Stream& stream, const Args& args) override {
    with_type(d_.gradient, [&]<typename T>() { enqueue<T>(*this, args, native(stream)); });
  }
  void fold(Stream& stream, const Args& args) override {
    cuda::launch(finish_norm, 1, threads, 0, native(stream), static_cast<const double*>(args.workspace),
                 static_cast<int>(blocks_), args.state, args.valid, args.expected);
  }

 private:
  template <typename T>
  static void enqueue(const CudaGradientNorm& op, const Args& args, cudaStream_t stream) {
    auto* sums = static_cast<double*>(args.workspace);
    const auto* gradient = static_cast<const T*>(args.gradient);
    if (op.pieces_.data())
      return cuda::launch(piece_sums<T>, op.blocks_, threads, 0, stream, gradient, aligned(gradient),
                          op.pieces_.as<GradientNormDesc::Piece>(), sums);
    const std::int64_t vectors = aligned(gradient) ? op.d_.count / lanes<T> : 0;
    cuda::launch(square_sums<T>, op.blocks_, threads, 0, stream, gradient, vectors, op.d_.count, sums);
  }

  GradientNormDesc d_;
  unsigned blocks_;
  Buffer pieces_;  // empty: all elements at once
};

}  // namespace

template <>
Made<GradientNorm> make_cuda(Device& device, const GradientNormDesc& desc) {
  return make_unless<GradientNorm, CudaGradientNorm>(unless_f32_bf16_or_fp16("gradient norm", {desc.gradient}), device,
                                                     desc);
}

}  // namespace assay::ops
