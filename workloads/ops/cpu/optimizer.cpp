// AdamW and SGD in one pass over flat buffers, and the norm of the gradients in another.
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/kernels/flat_kernels.h"
#include "workloads/ops/cpu/parallel.h"

#include <algorithm>
#include <cmath>

namespace assay::ops {

namespace {

constexpr std::int64_t optimizer_min_elements = 16384;  // per thread

class CpuOptimizer final : public VectorOp<Optimizer> {
 public:
  CpuOptimizer(const OptimizerDesc& desc) : d_(desc), parts_(parts_for(desc.count, optimizer_min_elements)) {
    const FlatKernels& kernels = cpu::kernels<FlatKernels>();
    adamw_ = kernels.adamw[desc.gradient == DType::bf16][desc.parameter == DType::bf16];
    sgd_ = kernels.sgd[desc.gradient == DType::bf16][desc.parameter == DType::bf16];
  }

  void run(Stream&, const Args& args) override {
    if (args.state->found_infinity) return;
    const OptimizerBuffers buffers{.master = static_cast<float*>(args.master),
                                   .gradient = args.gradient,
                                   .moment1 = static_cast<float*>(args.moment1),
                                   .moment2 = static_cast<float*>(args.moment2),
                                   .parameter = d_.parameter == d_.master ? nullptr : args.parameter};
    if (d_.kind == OptimizerKind::adamw)
      pass(adamw_, buffers, functors::AdamwUpdate<float>(d_, *args.state));
    else
      pass(sgd_, buffers, functors::SgdUpdate<float>(d_, *args.state));
  }

 private:
  template <typename Kernel, typename Update>
  void pass(Kernel kernel, const OptimizerBuffers& buffers, const Update& update) const {
    for_parts(parts_, [&](int index) {
      const Part mine = part_of(d_.count, 64, index, parts_);
      for (const DecaySegment& segment : d_.segments) {
        const std::int64_t begin = std::max(mine.begin, segment.begin), end = std::min(mine.end, segment.end);
        if (begin < end) kernel(buffers, update, segment.decay, begin, end);
      }
    });
  }

  OptimizerDesc d_;
  int parts_;
  FlatKernels::Adamw adamw_ = nullptr;
  FlatKernels::Sgd sgd_ = nullptr;
};

std::string problem(const OptimizerDesc& d) {
  if (d.master != DType::f32)
    return fmt::format("the cpu backend's optimizer needs masters in f32, not {}", name_of(d.master));
  return type_problem("optimizer", {d.gradient, d.parameter});
}

// Sums blocks of fixed size, so that the norm does not depend on the number of threads.
class CpuGradientNorm final : public VectorOp<GradientNorm> {
 public:
  CpuGradientNorm(const GradientNormDesc& desc)
      : blocks_(square_sum_blocks(desc)),
        parts_(parts_for(sums(), 1)),
        kernel_(cpu::kernels<FlatKernels>().sum_of_squares[desc.gradient == DType::bf16]) {}

  std::int64_t sums() const override { return static_cast<std::int64_t>(blocks_.size()); }
  std::size_t workspace_bytes() const override { return sizeof(double) * blocks_.size(); }

  void sum(Stream&, const Args& args) override {
    auto* sums = static_cast<double*>(args.workspace);
    for_parts(parts_, [&](int index) {
      const Part mine = part_of(this->sums(), 1, index, parts_);
      for (std::int64_t b = mine.begin; b < mine.end; ++b) {
        const auto& [begin, count, held] = blocks_[static_cast<std::size_t>(b)];
        sums[b] = held ? kernel_(args.gradient, begin, begin + count) : 0.0;
      }
    });
  }
  void fold(Stream&, const Args& args) override {
    const auto* sums = static_cast<const double*>(args.workspace);
    double total = 0;
    for (std::size_t b = 0; b < blocks_.size(); ++b) total += sums[b];
    StepState& state = *args.state;
    const auto scale = static_cast<double>(gradients_scale(state, args));
    const double norm = std::sqrt(total) / scale;
    // Squares of f32 do not overflow f64: the sum is finite if every gradient is.
    state.found_infinity = std::isfinite(total) && scale != 0 ? 0 : 1;
    state.norm = static_cast<float>(norm);
    const double clip = state.max_norm > 0 ? std::min(1.0, static_cast<double>(state.max_norm) / (norm + 1e-6)) : 1.0;
    state.coefficient = static_cast<float>(clip / scale);
  }

 private:
  std::vector<GradientNormDesc::Piece> blocks_;
  int parts_;
  FlatKernels::SumOfSquares kernel_;
};

}  // namespace

template <>
Made<Optimizer> make_cpu(const OptimizerDesc& desc) {
  return make_unless<Optimizer, CpuOptimizer>(problem(desc), desc);
}

template <>
Made<GradientNorm> make_cpu(const GradientNormDesc& desc) {
  return make_unless<GradientNorm, CpuGradientNorm>(type_problem("gradient norm", {desc.gradient}), desc);
}

}  // namespace assay::ops
