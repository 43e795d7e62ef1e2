// GELU and the SiLU gate. Forward moves 2 (gate: 3) and backward 3 (gate: 5) times rows x columns elements: that is the
// floor. The arithmetic takes less time: one exponential and one reciprocal per element.
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/functors/activation.h"

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 256;
constexpr int unroll = 2;  // vectors in flight per thread and array

// Maps an index into y's vectors to one into x.
struct Columns {
  std::int64_t per_row;  // vectors, or single elements
  bool gate;

  // The gate's index; `up` is `per_row` behind it.
  __device__ std::int64_t operator()(std::int64_t i) const { return gate ? i + divide(i, per_row).whole * per_row : i; }
};

template <ActivationKind kind>
__device__ __forceinline__ float activated(float x, float up) {
  if constexpr (kind == ActivationKind::gelu_tanh) return functors::GeluTanh()(x);
  if constexpr (kind == ActivationKind::gelu_erf) return functors::GeluErf()(x);
  return functors::SiluGate()(x, up);
}

// Vectors [0, vectors), one contiguous range per block; the elements behind them one by one.
template <typename T, ActivationKind kind>
__global__ void __launch_bounds__(threads)
    activation(const T* x, T* y, std::int64_t vectors, std::int64_t count, std::int64_t columns) {
  constexpr int N = lanes<T>;
  constexpr bool gate = kind == ActivationKind::silu_gate;
  const Columns vector_at{columns / N, gate}, at{columns, gate};
  const std::int64_t first = std::int64_t{blockIdx.x} * (threads * unroll) + threadIdx.x;
  Packed<T, N> in[unroll], up[unroll];
#pragma unroll
  for (int u = 0; u < unroll; ++u)
    if (const std::int64_t i = first + u * threads; i < vectors) {
      const std::int64_t from = vector_at(i) * N;
      in[u] = load<N>(x + from);
      if constexpr (gate) up[u] = load<N>(x + from + columns);
    }
#pragma unroll
  for (int u = 0; u < unroll; ++u)
    if (const std::int64_t i = first + u * threads; i < vectors) {
      Vector<float, N> value = widened(in[u]);
#pragma unroll
      for (int k = 0; k < N; ++k) value.lane[k] = activated<kind>(value.lane[k], gate ? widen(up[u][k]) : 0.0f);
      store_narrow(y + i * N, value);
    }
  const std::int64_t all = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = vectors * N + std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += all) {
    const std::int64_t from = at(i);
    y[i] = narrow<T>(activated<kind>(widen(x[from]), gate ? widen(x[from + columns]) : 0.0f));
  }
}

// The gradients of x (the gate) and of up.
template <ActivationKind kind>
__device__ __forceinline__ functors::SiluGateGradients<float> gradients(float x, float up, float dy) {
  if constexpr (kind == ActivationKind::gelu_tanh) return {dy * functors::GeluTanhGradient()(x), 0.0f};
  if constexpr (kind == ActivationKind::gelu_erf) return {dy * functors::GeluErfGradient()(x), 0.0f};
  return functors::SiluGateGradient()(x, up, dy);
}

// dx may be x: each thread reads what it overwrites.
template <typename T, ActivationKind kind>
__global__ void __launch_bounds__(threads, 3) activation_gradient(const T* x, const T* dy, T* dx, std::int64_t vectors,
                                                                  std::int64_t count, std::int64_t columns) {
  constexpr int N = lanes<T>;
  constexpr bool gate = kind == ActivationKind::silu_gate;
  const Columns vector_at{columns / N, gate}, at{columns, gate};
  const std::int64_t first = std::int64_t{blockIdx.x} * (threads * unroll) + threadIdx.x;
  Packed<T, N> in[unroll], up[unroll], out[unroll];
#pragma unroll
  for (int u = 0; u < unroll; ++u)
    if (const std::int64_t i = first + u * threads; i < vectors) {
      const std::int64_t from = vector_at(i) * N;
      in[u] = load<N>(x + from);
      if constexpr (gate) up[u] = load<N>(x + from + columns);
      out[u] = load<N>(dy + i * N);
    }
#pragma unroll
  for (int u = 0; u < unroll; ++u)
    if (const std::int64_t i = first + u * threads; i < vectors) {
      Vector<float, N> dgate, dup;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const auto both = gradients<kind>(widen(in[u][k]), gate ? widen(up[u][k]) : 0.0f, widen(out[u][k]));
        dgate.lane[k] = both.gate;
        dup.lane[k] = both.up;
      }
      const std::int64_t to = vector_at(i) * N;
      store_narrow(dx + to, dgate);
      if constexpr (gate) store_narrow(dx + to + columns, dup);
    }
  const std::int64_t all = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = vectors * N + std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += all) {
    const std::int64_t from = at(i);
    const auto both = gradients<kind>(widen(x[from]), gate ? widen(x[from + columns]) : 0.0f, widen(dy[i]));
    dx[from] = narrow<T>(both.gate);
    if constexpr (gate) dx[from + columns] = narrow<T>(both.up);
  }
}

// One type's kernels, by kind.
template <typename T>
auto forward_of(ActivationKind kind) {
  return kind == ActivationKind::gelu_tanh  ? activation<T, ActivationKind::gelu_tanh>
         : kind == ActivationKind::gelu_erf ? activation<T, ActivationKind::gelu_erf>
                                            : activation<T, ActivationKind::silu_gate>;
}
template <typename T>
auto backward_of(ActivationKind kind) {
  return kind == ActivationKind::gelu_tanh  ? activation_gradient<T, ActivationKind::gelu_tanh>
         : kind == ActivationKind::gelu_erf ? activation_gradient<T, ActivationKind::gelu_erf>
                                            : activation_gradient<T, ActivationKind::silu_gate>;
}

// The number of vectors of y, none if a gate's rows are not aligned to 16 bytes, and the blocks for them.
template <typename T>
struct Shape {
  std::int64_t count;
  std::int64_t vectors;
  unsigned blocks;

  Shape(const ActivationDesc& d, bool is_aligned) : count(d.rows * d.columns) {
    const bool whole = d.kind != ActivationKind::silu_gate || d.columns % lanes<T> == 0;
    vectors = is_aligned && whole ? count / lanes<T> : 0;
    blocks = vectors > 0 ? blocks_for(vectors, threads * unroll) : blocks_for(count, threads, 1 << 16);
  }
};

class CudaActivationForward final : public CudaOp<ActivationForward> {
 public:
  CudaActivationForward(Device& device, const ActivationDesc& desc) : CudaOp(device), d_(desc) {}

  void run(Stream& stream, const Args& args) override {
    with_type(d_.dtype, [&]<typename T>() {
      const Shape<T> shape(d_, aligned(args.x, args.y));
      if (shape.count == 0) return;
      cuda::launch(forward_of<T>(d_.kind), shape.blocks, threads, 0, native(stream), static_cast<const T*>(args.x),
                   static_cast<T*>(args.y), shape.vectors, shape.count, d_.columns);
    });
  }

 private:
  ActivationDesc d_;
};

class CudaActivationBackward final : public CudaOp<ActivationBackward> {
 public:
  CudaActivationBackward(Device& device, const ActivationDesc& desc) : CudaOp(device), d_(desc) {}

  void run(Stream& stream, const Args& args) override {
    with_type(d_.dtype, [&]<typename T>() {
      const Shape<T> shape(d_, aligned(args.x, args.dy, args.dx));
      if (shape.count == 0) return;
      cuda::launch(backward_of<T>(d_.kind), shape.blocks, threads, 0, native(stream), static_cast<const T*>(args.x),
                   static_cast<const T*>(args.dy), static_cast<T*>(args.dx), shape.vectors, shape.count, d_.columns);
    });
  }

 private:
  ActivationDesc d_;
};

std::string problem(const ActivationDesc& d) {
  if (d.rows < 0 || d.columns <= 0)
    return "an activation of " + std::to_string(d.rows) + " rows by " + std::to_string(d.columns) + " columns";
  return unless_f32_bf16_or_fp16("activation", {d.dtype});
}

}  // namespace

template <>
Made<ActivationForward> make_cuda(Device& device, const ActivationDesc& desc) {
  return make_unless<ActivationForward, CudaActivationForward>(problem(desc), device, desc);
}

template <>
Made<ActivationBackward> make_cuda(Device& device, const ActivationDesc& desc) {
  return make_unless<ActivationBackward, CudaActivationBackward>(problem(desc), device, desc);
}

}  // namespace assay::ops
