// AdamW and SGD in one pass over flat buffers. AdamW reads the gradient, and reads and writes weights and both moments:
// 28 bytes per element with f32 gradients, plus 2 for the rounded copy of the weights, written in the same pass; SGD
// 20, plus 2. That is the floor.
#include "workloads/ops/functors/optimizer.h"

#include "harness/device/cuda/reduce.h"
#include "workloads/ops/cuda/cuda_op.h"
#include "workloads/ops/cuda/cuda_ops.h"

namespace assay::ops {

namespace {

using namespace cuda;

constexpr int threads = 256;
constexpr int N = 4;       // elements per vector: 16 bytes of f32
constexpr int unroll = 2;  // vectors in flight per thread and array
constexpr int chunk = threads * N * unroll;

template <OptimizerKind kind>
using Update =
    std::conditional_t<kind == OptimizerKind::adamw, functors::AdamwUpdate<float>, functors::SgdUpdate<float>>;

// The factors of a step, and the fraction of the weights of each segment that AdamW's decay keeps (for SGD: its decay).
// Computed once per step, since pow() in double is expensive.
template <OptimizerKind kind>
__global__ void __launch_bounds__(warp_threads)
    prepare_step(const StepState* state, functors::StepConstants constants, const double* decays, int segments,
                 Update<kind>* update, float* kept) {
  const Update<kind> mine(constants, *state);
  if (threadIdx.x == 0) *update = mine;
  for (int s = static_cast<int>(threadIdx.x); s < segments; s += warp_threads) {
    if constexpr (kind == OptimizerKind::adamw)
      kept[s] = mine.keep(decays[s]);
    else
      kept[s] = static_cast<float>(decays[s]);
  }
}

template <OptimizerKind kind, typename Gradient, typename Parameter>
struct FlatStep {
  const StepState* state;
  const Update<kind>* update;
  const std::int64_t* ends;  // of the segments
  const float* kept;
  int segments;
  std::int64_t count;
  std::int64_t vectors;  // the elements behind them are processed one by one
  float* master;
  const Gradient* gradient;
  float* moment1;
  float* moment2;        // AdamW
  Parameter* parameter;  // null: none
};

// The segment that contains an element.
struct Segment {
  const std::int64_t* ends;
  const float* all_kept;
  int index;
  std::int64_t end;
  float kept;

  // The first segment that ends after element i.
  __device__ Segment(const std::int64_t* from, const float* from_kept, int count, std::int64_t i)
      : ends(from), all_kept(from_kept) {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ends[middle] <= i)
        low = middle + 1;
      else
        high = middle;
    }
    set(low);
  }
  // Advances to the segment of element i, which is this or a later one.
  __device__ void move_to(std::int64_t i) {
    while (i >= end) set(index + 1);
  }

 private:
  __device__ void set(int s) {
    index = s;
    end = ends[s];
    kept = all_kept[s];
  }
};

template <OptimizerKind kind, typename Gradient, typename Parameter>
__global__ void __launch_bounds__(threads) optimizer_step(FlatStep<kind, Gradient, Parameter> p) {
  constexpr bool adamw = kind == OptimizerKind::adamw;
  if (p.state->found_infinity != 0) return;
  const std::int64_t first = std::int64_t{blockIdx.x} * (threads * unroll) + threadIdx.x;
  Vector<float, N> weight[unroll], moment1[unroll], moment2[unroll];
  Packed<Gradient, N> gradient[unroll];
#pragma unroll
  for (int u = 0; u < unroll; ++u)
    if (const std::int64_t i = (first + u * threads) * N; i < p.vectors * N) {
      weight[u] = load_wide<N, Keep::no>(p.master + i);
      gradient[u] = load<N, Keep::no>(p.gradient + i);
      moment1[u] = load_wide<N, Keep::no>(p.moment1 + i);
      if constexpr (adamw) moment2[u] = load_wide<N, Keep::no>(p.moment2 + i);
    }
  const Update<kind> update = *p.update;
  const auto step = [&](float& w, float& m1, float& m2, float g, float kept) {
    if constexpr (adamw)
      update(w, m1, m2, g, kept);
    else
      update(w, m1, g, kept);
  };
  if (first < p.vectors) {
    Segment segment(p.ends, p.kept, p.segments, first * N);
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (const std::int64_t i = (first + u * threads) * N; i < p.vectors * N) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          segment.move_to(i + k);
          step(weight[u].lane[k], moment1[u].lane[k], moment2[u].lane[k], widen(gradient[u][k]), segment.kept);
        }
        store_narrow<Keep::no>(p.master + i, weight[u]);
        store_narrow<Keep::no>(p.moment1 + i, moment1[u]);
        if constexpr (adamw) store_narrow<Keep::no>(p.moment2 + i, moment2[u]);
        if constexpr (!std::is_same_v<Parameter, float>) store_narrow(p.parameter + i, weight[u]);
      }
  }
  const std::int64_t all = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = p.vectors * N + std::int64_t{blockIdx.x} * threads + threadIdx.x; i < p.count; i += all) {
    const Segment segment(p.ends, p.kept, p.segments, i);
    float w = p.master[i], m1 = p.moment1[i], m2 = adamw ? p.moment2[i] : 0.0f;
    step(w, m1, m2, widen(p.gradient[i]), segment.kept);
    p.master[i] = w;
    p.moment1[i] = m1;
    if constexpr (adamw) p.moment2[i] = m2;
    if constexpr (!std::is_same_v<Parameter, float>) p.parameter[i] = narrow<Parameter>(w);
  }
}

class CudaOptimizer final : public CudaOp<Optimizer> {
 public:
  using Enqueue = void (*)(const CudaOptimizer&, const Args&, cudaStream_t);

  CudaOptimizer(Device& device, const OptimizerDesc& desc)
      : CudaOp(device), constants_(desc), count_(desc.count), enqueue_(choose(desc)) {
    std::vector<std::int64_t> ends;
    std::vector<double> decays;
    for (const DecaySegment& segment : desc.segments) {
      if (segment.end == segment.begin) continue;
      if (!decays.empty() && decays.back() == segment.decay)
        ends.back() = segment.end;
      else
        ends.push_back(segment.end), decays.push_back(segment.decay);
    }
    segments_ = static_cast<int>(ends.size());
    if (segments_ == 0) return;
    ends_ = device.allocate(ends.size() * sizeof(ends[0]));
    decays_ = device.allocate(decays.size() * sizeof(decays[0]));
    const auto stream = device.make_stream();
    device.copy(ends_.data(), ends.data(), ends_.bytes(), *stream);
    device.copy(decays_.data(), decays.data(), decays_.bytes(), *stream);
    stream->synchronize();
  }

  // The step's factors, and one number per segment.
  std::size_t workspace_bytes() const override {
    return update_bytes + static_cast<std::size_t>(segments_) * sizeof(float);
  }

  void run(Stream& stream, const Args& args) override {
    if (count_ > 0) enqueue_(*this, args, native(stream));
  }

  // Null if there is no such kernel.
  static Enqueue choose(const OptimizerDesc& d) {
    return d.kind == OptimizerKind::adamw ? of_types<OptimizerKind::adamw>(d) : of_types<OptimizerKind::sgd>(d);
  }

 private:
  static constexpr std::size_t update_bytes = 64;
  static_assert(sizeof(functors::AdamwUpdate<float>) <= update_bytes);

  // Parameter = float means no copy.
  template <OptimizerKind kind>
  static Enqueue of_types(const OptimizerDesc& d) {
    const auto is = [&](DType gradient, DType parameter) {
      return d.master == DType::f32 && d.gradient == gradient && d.parameter == parameter;
    };
    if (is(DType::f32, DType::f32)) return &enqueue<kind, float, float>;
    if (is(DType::f32, DType::bf16)) return &enqueue<kind, float, __nv_bfloat16>;
    if (is(DType::f32, DType::fp16)) return &enqueue<kind, float, __half>;
    if (is(DType::bf16, DType::f32)) return &enqueue<kind, __nv_bfloat16, float>;
    if (is(DType::bf16, DType::bf16)) return &enqueue<kind, __nv_bfloat16, __nv_bfloat16>;
    if (is(DType::fp16, DType::fp16)) return &enqueue<kind, __half, __half>;
    return nullptr;
  }

  template <OptimizerKind kind, typename Gradient, typename Parameter>
  static void enqueue(const CudaOptimizer& op, const Args& args, cudaStream_t stream) {
    auto* update = static_cast<Update<kind>*>(args.workspace);
    auto* kept = reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) + update_bytes);
    cuda::launch(prepare_step<kind>, 1, warp_threads, 0, stream, args.state, op.constants_, op.decays_.as<double>(),
                 op.segments_, update, kept);
    FlatStep<kind, Gradient, Parameter> step{.state = args.state,
                                             .update = update,
                                             .ends = op.ends_.as<std::int64_t>(),
                                             .kept = kept,
                                             .segments = op.segments_,
                                             .count = op.count_,
                                             .vectors = 0,
                                             .master = static_cast<float*>(args.master),
                                             .gradient = static_cast<const Gradient*>(args.gradient),
                                             .moment1 = static_cast<float*>(args.moment1),
                                             .moment2 = static_cast<float*>(args.moment2),
                                             .parameter = static_cast<Parameter*>(args.parameter)};
    if (aligned(step.master, step.gradient, step.moment1, step.moment2) &&
        (std::is_same_v<Parameter, float> || aligned(step.parameter)))
      step.vectors = op.count_ / N;
    cuda::launch(optimizer_step<kind, Gradient, Parameter>, blocks_for(op.count_, chunk), threads, 0, stream, step);
  }

  functors::StepConstants constants_;
  std::int64_t count_;
  Enqueue enqueue_;
  int segments_ = 0;
  Buffer ends_;    // (segments) i64
  Buffer decays_;  // (segments) f64
};

}  // namespace

template <>
Made<Optimizer> make_cuda(Device& device, const OptimizerDesc& desc) {
  std::string problem;
  if (!CudaOptimizer::choose(desc))
    problem = "the cuda backend has no optimizer with weights of " + std::string(name_of(desc.master)) +
              ", gradients of " + std::string(name_of(desc.gradient)) + " and parameters of " +
              std::string(name_of(desc.parameter));
  return make_unless<Optimizer, CudaOptimizer>(std::move(problem), device, desc);
}

}  // namespace assay::ops
