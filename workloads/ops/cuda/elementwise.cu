// Casts and sums of flat arrays. The floor is count * (size of in, twice for sums, + size of out) bytes.
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 256;
constexpr int unroll = 2;  // vectors in flight per thread and array

// 16 bytes of the smaller type.
template <typename In, typename Out>
constexpr int elements = lanes<std::conditional_t<(sizeof(In) < sizeof(Out)), In, Out>>;

template <ElementwiseKind kind>
__device__ float combined(float a, float b, float alpha, float beta) {
  if constexpr (kind == ElementwiseKind::add) return a + b;
  if constexpr (kind == ElementwiseKind::combine) return fmaf(alpha, a, beta * b);
  return a;
}

// Vectors [0, vectors), one contiguous range per block; the elements behind them one by one. `out` may be `a` or `b`.
template <typename In, typename Out, ElementwiseKind kind>
__global__ void __launch_bounds__(threads)
    elementwise(const In* a, const In* b, Out* out, std::int64_t vectors, std::int64_t count, float alpha, float beta) {
  constexpr int N = elements<In, Out>;
  constexpr bool both = kind != ElementwiseKind::cast;
  const std::int64_t first = std::int64_t{blockIdx.x} * (threads * unroll) + threadIdx.x;
  Packed<In, N> x[unroll], y[unroll];
#pragma unroll
  for (int u = 0; u < unroll; ++u)
    if (const std::int64_t i = first + u * threads; i < vectors) {
      x[u] = load<N>(a + i * N);
      if constexpr (both) y[u] = load<N>(b + i * N);
    }
#pragma unroll
  for (int u = 0; u < unroll; ++u)
    if (const std::int64_t i = first + u * threads; i < vectors) {
      Vector<float, N> value = widened(x[u]);
      if constexpr (both) {
        const Vector<float, N> other = widened(y[u]);
#pragma unroll
        for (int k = 0; k < N; ++k) value.lane[k] = combined<kind>(value.lane[k], other.lane[k], alpha, beta);
      }
      store_narrow(out + i * N, value);
    }
  const std::int64_t all = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = vectors * N + std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += all)
    out[i] = narrow<Out>(combined<kind>(widen(a[i]), both ? widen(b[i]) : 0.0f, alpha, beta));
}

class CudaElementwise final : public CudaOp<Elementwise> {
 public:
  using Run = void (*)(const ElementwiseDesc&, const Args&, cudaStream_t);

  CudaElementwise(Device& device, const ElementwiseDesc& desc) : CudaOp(device), d_(desc), run_(choose(desc)) {}

  void run(Stream& stream, const Args& args) override { run_(d_, args, native(stream)); }

  // Null if there is no such kernel.
  static Run choose(const ElementwiseDesc& d) {
    switch (d.kind) {
      case ElementwiseKind::add: return sum_of(d.in, d.out);
      case ElementwiseKind::combine:
        return d.in == DType::f32 && d.out == DType::f32 ? &enqueue<float, float, ElementwiseKind::combine> : nullptr;
      case ElementwiseKind::cast: break;
    }
    switch (d.in) {
      case DType::f32: return cast_from<float>(d.out);
      case DType::bf16: return cast_from<__nv_bfloat16>(d.out);
      case DType::fp16: return cast_from<__half>(d.out);
      default: return nullptr;
    }
  }

 private:
  template <typename In>
  static Run cast_from(DType out) {
    constexpr auto kind = ElementwiseKind::cast;
    switch (out) {
      case DType::f32: return &enqueue<In, float, kind>;
      case DType::bf16: return &enqueue<In, __nv_bfloat16, kind>;
      case DType::fp16: return &enqueue<In, __half, kind>;
      case DType::fp8_e4m3: return &enqueue<In, __nv_fp8_e4m3, kind>;
      case DType::fp8_e5m2: return &enqueue<In, __nv_fp8_e5m2, kind>;
      default: return nullptr;
    }
  }

  static Run sum_of(DType in, DType out) {
    constexpr auto kind = ElementwiseKind::add;
    if (in == DType::f32 && out == DType::f32) return &enqueue<float, float, kind>;
    if (in == DType::f32 && out == DType::bf16) return &enqueue<float, __nv_bfloat16, kind>;
    if (in == DType::f32 && out == DType::fp16) return &enqueue<float, __half, kind>;
    if (in == DType::bf16 && out == DType::f32) return &enqueue<__nv_bfloat16, float, kind>;
    if (in == DType::bf16 && out == DType::bf16) return &enqueue<__nv_bfloat16, __nv_bfloat16, kind>;
    if (in == DType::fp16 && out == DType::f32) return &enqueue<__half, float, kind>;
    if (in == DType::fp16 && out == DType::fp16) return &enqueue<__half, __half, kind>;
    return nullptr;
  }

  template <typename In, typename Out, ElementwiseKind kind>
  static void enqueue(const ElementwiseDesc& d, const Args& args, cudaStream_t stream) {
    if (d.count == 0) return;
    const std::int64_t vectors = aligned(args.a, args.b, args.out) ? d.count / elements<In, Out> : 0;
    const unsigned blocks = vectors > 0 ? blocks_for(vectors, threads * unroll) : blocks_for(d.count, threads, 1 << 16);
    cuda::launch(elementwise<In, Out, kind>, blocks, threads, 0, stream, static_cast<const In*>(args.a),
                 static_cast<const In*>(args.b), static_cast<Out*>(args.out), vectors, d.count,
                 static_cast<float>(d.alpha), static_cast<float>(d.beta));
  }

  ElementwiseDesc d_;
  Run run_;
};

}  // namespace

template <>
Made<Elementwise> make_cuda(Device& device, const ElementwiseDesc& desc) {
  std::string problem;
  if (!CudaElementwise::choose(desc))
    problem = "the cuda backend has no such element-wise op from " + std::string(name_of(desc.in)) + " to " +
              std::string(name_of(desc.out));
  return make_unless<Elementwise, CudaElementwise>(std::move(problem), device, desc);
}

}  // namespace assay::ops
