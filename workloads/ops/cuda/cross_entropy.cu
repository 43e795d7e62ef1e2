// Softmax cross-entropy, one block per row. Reads logits from memory once and keeps as many as fit in shared memory
// until their gradient overwrites them; updates the largest logit and the softmax's sum meanwhile. Moves 2 x rows x
// classes elements (1 x without gradient): that is the floor. The rest of a row that does not fit is read again, from
// the L2 cache.
#include "harness/device/cuda/reduce.h"
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/functors/math.h"

#include <cfloat>

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int max_threads = 1024;  // of a block that has a multiprocessor to itself
constexpr int pair_threads = 512;  // of each of two blocks that share one
constexpr int unroll = 4;          // vectors in flight per thread: 64 KiB per multiprocessor

template <typename T>
struct Rows {
  T* logits;
  const std::int32_t* targets;
  const float* scale;
  float* losses;
  std::uint8_t* counts;  // 1: valid, 2: correct
  std::int64_t rows;
  std::int64_t stride;
  int classes;
  int kept;  // vectors in shared memory
  float smoothing;
  std::int32_t ignored;
};

// A thread's part of a row: the largest logit so far, the sum of exponentials relative to it; for smoothing, the sum of
// logits.
template <bool smooth>
struct Share {
  float largest = -FLT_MAX;  // finite: exp(-inf - largest) is 0
  float sum = 0;
  float logits = 0;
  int first_largest = 0x7fffffff;

  template <int N>
  __device__ __forceinline__ void add(const Vector<float, N>& x, int index) {
    float most = x.lane[0];
#pragma unroll
    for (int k = 1; k < N; ++k) most = fmaxf(most, x.lane[k]);
    if (most > largest) {
      sum *= functors::exp_of_negative(largest - most);
      largest = most;
#pragma unroll
      for (int k = N - 1; k >= 0; --k)
        if (x.lane[k] == most) first_largest = index + k;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) {
      sum += functors::exp_of_negative(x.lane[k] - largest);
      if constexpr (smooth) logits += x.lane[k];
    }
  }
};

// Rows may be unaligned: elements before the first 16 bytes and after the last are processed one by one.
template <typename T, bool gradient, bool smooth>
__global__ void __launch_bounds__(max_threads) cross_entropy(Rows<T> p) {
  constexpr int N = lanes<T>;
  ASSAY_DYNAMIC_SHARED(uint4, kept);
  __shared__ float scratch[warp_threads];
  __shared__ Ranked ranks[warp_threads];
  const int me = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (std::int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    T* const x = p.logits + row * p.stride;
    const std::int32_t target = p.targets[row];
    const int misplaced = static_cast<int>(reinterpret_cast<std::uintptr_t>(x) % 16 / sizeof(T));
    const int head = min((N - misplaced) % N, p.classes);
    const int vectors = (p.classes - head) / N, tail = head + vectors * N;
    // A thread has at most one of the elements before the vectors and one of those after them.
    const int before = me < head ? me : -1, after = tail + me < p.classes ? tail + me : -1;
    T* const body = x + head;
    if (target == p.ignored) {
      if constexpr (gradient) {
        Vector<float, N> zero = {};
        for (int v = me; v < vectors; v += threads) store_narrow(body + std::int64_t{v} * N, zero);
        if (before >= 0) x[before] = narrow<T>(0.0f);
        if (after >= 0) x[after] = narrow<T>(0.0f);
      }
      if (me == 0) {
        p.losses[row] = 0;
        p.counts[row] = 0;
      }
      continue;
    }

    Share<smooth> share;
    if (me == 0) share.first_largest = 0;  // if no logit exceeds the initial value
    if (before >= 0) share.add(Vector<float, 1>{{widen(x[before])}}, before);
    for (int begin = me; begin < vectors; begin += unroll * threads) {
      Packed<T, N> in[unroll];
#pragma unroll
      for (int u = 0; u < unroll; ++u)
        if (const int v = begin + u * threads; v < vectors) in[u] = load<N>(body + std::int64_t{v} * N);
#pragma unroll
      for (int u = 0; u < unroll; ++u)
        if (const int v = begin + u * threads; v < vectors) {
          if (gradient && v < p.kept) memcpy(kept + v, &in[u], sizeof(uint4));
          share.add(widened(in[u]), head + v * N);
        }
    }
    if (after >= 0) share.add(Vector<float, 1>{{widen(x[after])}}, after);

    const Ranked top =
        block_reduce(Ranked{share.largest, share.first_largest}, Largest(), Ranked{-FLT_MAX, 0x7fffffff}, ranks);
    const float sum = block_sum(share.sum * functors::exp_of_negative(share.largest - top.value), scratch);
    const float mean = smooth ? block_sum(share.logits, scratch) / static_cast<float>(p.classes) : 0.0f;
    if (me == 0) {
      const float own = widen(x[target]);
      const float below = top.value - own;  // terms of one sign: a masked target's loss is infinite, not NaN
      p.losses[row] = (smooth ? (1 - p.smoothing) * below + p.smoothing * (top.value - mean) : below) + logf(sum);
      p.counts[row] = static_cast<std::uint8_t>(top.index == target ? 3 : 1);
    }
    if constexpr (gradient) {
      __syncthreads();  // the target's logit has been read
      const float scale = *p.scale, factor = scale / sum;
      const float shift = smooth ? scale * p.smoothing / static_cast<float>(p.classes) : 0.0f;
      const float hit = scale * (1 - p.smoothing);
      const auto value = [&](float logit) {
        const float power = functors::exp_of_negative(logit - top.value);
        return smooth ? fmaf(power, factor, -shift) : power * factor;
      };
      const auto write = [&](int v, const Packed<T, N>& logits) {
        Vector<float, N> wide = widened(logits);
#pragma unroll
        for (int k = 0; k < N; ++k) wide.lane[k] = value(wide.lane[k]);
        if (const int own = target - (head + v * N); own >= 0 && own < N) {
#pragma unroll
          for (int k = 0; k < N; ++k) wide.lane[k] -= k == own ? hit : 0.0f;
        }
        store_narrow(body + std::int64_t{v} * N, wide);
      };
      const auto write_one = [&](int index) {
        const float rest = index == target ? hit : 0.0f;
        x[index] = narrow<T>(value(widen(x[index])) - rest);
      };
      int v = me;
#pragma unroll 2
      for (const int end = min(vectors, p.kept); v < end; v += threads)
        write(v, load<N>(reinterpret_cast<const T*>(kept + v)));
      for (; v < vectors; v += threads) write(v, load<N>(body + std::int64_t{v} * N));
      if (before >= 0) write_one(before);
      if (after >= 0) write_one(after);
    }
  }
}

// Adds the rows' losses, in the same order on every GPU, and counts.
constexpr int sum_threads = 1024;
constexpr int sum_ahead = 8;  // rows that a thread reads ahead
__global__ void __launch_bounds__(sum_threads)
    add_losses(const float* losses, const std::uint8_t* counts, std::int64_t rows, float* row_losses, LossSums* sums) {
  __shared__ double scratch[warp_threads];
  __shared__ Two<int> count_scratch[warp_threads];
  double loss = 0;
  Two<int> count{};  // valid, correct
  for (std::int64_t begin = threadIdx.x; begin < rows; begin += sum_threads * sum_ahead) {
    float own[sum_ahead];
    int bits[sum_ahead];
#pragma unroll
    for (int k = 0; k < sum_ahead; ++k) {
      const std::int64_t row = begin + k * sum_threads;
      own[k] = row < rows ? losses[row] : 0.0f;
      bits[k] = row < rows ? counts[row] : 0;
    }
#pragma unroll
    for (int k = 0; k < sum_ahead; ++k) {
      loss += static_cast<double>(own[k]);
      count.a += bits[k] & 1;
      count.b += bits[k] >> 1;
      if (const std::int64_t row = begin + k * sum_threads; row_losses && row < rows) row_losses[row] = own[k];
    }
  }
  loss = block_sum(loss, scratch);
  count = block_sum(count, count_scratch);
  if (threadIdx.x > 0) return;
  sums->loss += loss;
  sums->valid += count.a;
  sums->correct += count.b;
}

class CudaCrossEntropy final : public CudaOp<CrossEntropy> {
 public:
  CudaCrossEntropy(Device& device, const CrossEntropyDesc& desc) : CudaOp(device), d_(desc) {
    const auto per_vector = static_cast<std::int64_t>(16 / size_of(desc.dtype));
    const std::int64_t vectors = desc.classes / per_vector;
    const int limit = desc.gradient ? shared_limit() : 0;
    kept_ = static_cast<int>(std::min<std::int64_t>(vectors, limit / 16));
    // The system reserves 1 KiB per block.
    const bool shares = 2 * kept_ * 16 <= limit - 1024 || !desc.gradient;
    threads_ = static_cast<unsigned>(std::clamp<std::int64_t>(
        (vectors + warp_threads - 1) / warp_threads * warp_threads, warp_threads, shares ? pair_threads : max_threads));
    if (!desc.gradient) return;
    with_type(desc.dtype, [&]<typename T>() {
      ASSAY_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel_of<T>(desc)),
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    });
  }

  // Per row: the loss, then what it counts as.
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(d_.rows) * (sizeof(float) + sizeof(std::uint8_t));
  }

  void run(Stream& stream, const Args& args) override {
    with_type(d_.dtype, [&]<typename T>() { enqueue<T>(*this, args, native(stream)); });
  }

 private:
  // Dynamic shared memory per block: all there is, minus the kernel's static part and the system's.
  static int shared_limit() {
    int device = 0, bytes = 0;
    ASSAY_CUDA(cudaGetDevice(&device));
    ASSAY_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return std::max(0, bytes - 1024);
  }

  template <typename T>
  static void (*kernel_of(const CrossEntropyDesc& d))(Rows<T>) {
    const bool smooth = d.smoothing > 0;
    return d.gradient ? (smooth ? cross_entropy<T, true, true> : cross_entropy<T, true, false>)
                      : (smooth ? cross_entropy<T, false, true> : cross_entropy<T, false, false>);
  }

  template <typename T>
  static void enqueue(const CudaCrossEntropy& op, const Args& args, cudaStream_t stream) {
    const CrossEntropyDesc& d = op.d_;
    auto* losses = static_cast<float*>(args.workspace);
    const Rows<T> rows{.logits = static_cast<T*>(args.logits),
                       .targets = args.targets,
                       .scale = args.scale,
                       .losses = losses,
                       .counts = reinterpret_cast<std::uint8_t*>(losses + d.rows),
                       .rows = d.rows,
                       .stride = d.stride,
                       .classes = static_cast<int>(d.classes),
                       .kept = op.kept_,
                       .smoothing = static_cast<float>(d.smoothing),
                       .ignored = d.ignored};
    cuda::launch(kernel_of<T>(d), blocks_for(d.rows, 1, std::int64_t{64} * op.units()), op.threads_,
                 static_cast<std::size_t>(op.kept_) * 16, stream, rows);
    cuda::launch(add_losses, 1, sum_threads, 0, stream, losses, rows.counts, d.rows,
                 static_cast<float*>(args.row_losses), args.sums);
  }

  CrossEntropyDesc d_;
  unsigned threads_ = 0;
  int kept_ = 0;
};

std::string problem(const CrossEntropyDesc& d) {
  if (d.classes > (1 << 30))
    return "the cuda backend's cross-entropy takes up to 2^30 classes, not " + std::to_string(d.classes);
  if (d.rows > 0x7fffffff) return "rows are counted in 31 bits";
  return unless_f32_bf16_or_fp16("cross-entropy", {d.dtype});
}

}  // namespace

template <>
Made<CrossEntropy> make_cuda(Device& device, const CrossEntropyDesc& desc) {
  return make_unless<CrossEntropy, CudaCrossEntropy>(problem(desc), device, desc);
}

}  // namespace assay::ops
