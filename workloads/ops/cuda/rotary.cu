// Rotary position embedding, in place: the floor is 2 x batch x seq x heads x head_dim elements, and the tables once.
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/functors/rotary.h"

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 256;
constexpr int heads_per_thread = 4;  // share their reads of the tables, and are in flight together

// A thread rotates the same N pairs of `heads_per_thread` neighbouring heads of one token.
template <typename T, int N>
__global__ void __launch_bounds__(threads)
    rotary(T* x, const float* cosine, const float* sine, RotaryDesc d, std::int64_t count) {
  const std::int64_t half = d.head_dim / 2, places = half / N,
                     groups = (d.heads + heads_per_thread - 1) / heads_per_thread;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const Quotient pair = divide(i, places), group = divide(pair.whole, groups);
    const std::int64_t token = group.whole, at = pair.rest * N, head = group.rest * heads_per_thread;
    const std::int64_t angle = divide(token, d.seq).rest * half + at;
    T* first = x + token * d.stride + head * d.head_dim + at;
    Packed<T, N> low[heads_per_thread], high[heads_per_thread];
#pragma unroll
    for (int h = 0; h < heads_per_thread; ++h)
      if (head + h < d.heads) {
        low[h] = load<N>(first + h * d.head_dim);
        high[h] = load<N>(first + h * d.head_dim + half);
      }
    const Vector<float, N> c = load_wide<N>(cosine + angle);
    Vector<float, N> s = load_wide<N>(sine + angle);
    if (d.inverse) {
#pragma unroll
      for (int k = 0; k < N; ++k) s.lane[k] = -s.lane[k];
    }
#pragma unroll
    for (int h = 0; h < heads_per_thread; ++h)
      if (head + h < d.heads) {
        Vector<float, N> a = widened(low[h]), b = widened(high[h]);
#pragma unroll
        for (int k = 0; k < N; ++k) functors::Rotate()(a.lane[k], b.lane[k], c.lane[k], s.lane[k]);
        store_narrow(first + h * d.head_dim, a);
        store_narrow(first + h * d.head_dim + half, b);
      }
  }
}

class CudaRotary final : public CudaOp<Rotary> {
 public:
  CudaRotary(Device& device, const RotaryDesc& desc) : CudaOp(device), d_(desc) {}

  void run(Stream& stream, const Args& args) override {
    with_type(d_.dtype, [&]<typename T>() { enqueue<T>(d_, args, native(stream)); });
  }

 private:
  template <typename T>
  static void enqueue(const RotaryDesc& d, const Args& args, cudaStream_t stream) {
    constexpr int N = lanes<T>;
    const bool whole = aligned(args.x, args.cosine, args.sine) && d.head_dim / 2 % N == 0 && d.stride % N == 0;
    const std::int64_t groups = (d.heads + heads_per_thread - 1) / heads_per_thread;
    const std::int64_t count = d.batch * d.seq * groups * (d.head_dim / 2 / (whole ? N : 1));
    cuda::launch(whole ? rotary<T, N> : rotary<T, 1>, blocks_for(count, threads), threads, 0, stream,
                 static_cast<T*>(args.x), static_cast<const float*>(args.cosine), static_cast<const float*>(args.sine),
                 d, count);
  }

  RotaryDesc d_;
};

}  // namespace

template <>
Made<Rotary> make_cuda(Device& device, const RotaryDesc& desc) {
  return make_unless<Rotary, CudaRotary>(unless_f32_bf16_or_fp16("rotary embedding", {desc.dtype}), device, desc);
}

}  // namespace assay::ops
