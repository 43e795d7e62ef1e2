// The oracle's optimizer steps and gradient norm: the shared functors in double.
#include "workloads/ops/functors/optimizer.h"

#include "tests/oracle/reference_op.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::ops::reference {

namespace {

template <typename T>
class ReferenceOptimizer final : public ReferenceOp<Optimizer> {
 public:
  using ReferenceOp::ReferenceOp;

  void run(Stream&, const Args& args) override {
    if (args.state->found_infinity) return;
    const functors::AdamwUpdate<double> adamw(d_, *args.state);
    const functors::SgdUpdate<double> sgd(d_, *args.state);
    const Array gradient(args.gradient, d_.gradient), parameter(args.parameter, d_.parameter);
    auto* master = static_cast<T*>(args.master);
    auto* moment1 = static_cast<T*>(args.moment1);
    auto* moment2 = static_cast<T*>(args.moment2);
    for (const DecaySegment& segment : d_.segments)
      for (std::int64_t i = segment.begin; i < segment.end; ++i) {
        double weight = widen(master[i]), first = widen(moment1[i]);
        if (d_.kind == OptimizerKind::adamw) {
          double second = widen(moment2[i]);
          adamw(weight, first, second, gradient[i], adamw.keep(segment.decay));
          moment2[i] = narrow<T>(second);
        } else {
          sgd(weight, first, gradient[i], segment.decay);
        }
        master[i] = narrow<T>(weight);
        moment1[i] = narrow<T>(first);
        if (d_.parameter != d_.master) parameter.set(i, widen(master[i]));
      }
  }
};

class ReferenceGradientNorm final : public ReferenceOp<GradientNorm> {
 public:
  explicit ReferenceGradientNorm(const GradientNormDesc& desc) : ReferenceOp(desc) {
    if (d_.pieces.empty()) d_.pieces.push_back({0, d_.count});
  }
  std::int64_t sums() const override { return static_cast<std::int64_t>(d_.pieces.size()); }
  std::size_t workspace_bytes() const override { return d_.pieces.size() * sizeof(double); }

  void sum(Stream&, const Args& args) override {
    const Array gradient(args.gradient, d_.gradient);
    auto* sums = static_cast<double*>(args.workspace);
    for (const auto& [begin, count, held] : d_.pieces) {
      double& sum = *sums++ = 0;
      for (std::int64_t i = 0; held && i < count; ++i) sum += gradient[begin + i] * gradient[begin + i];
    }
  }
  void fold(Stream&, const Args& args) override {
    const auto* sums = static_cast<const double*>(args.workspace);
    const double sum = std::accumulate(sums, sums + d_.pieces.size(), 0.0);
    StepState& state = *args.state;
    const auto scale = static_cast<double>(gradients_scale(state, args));
    const auto limit = static_cast<double>(state.max_norm);
    const double norm = std::sqrt(sum) / scale;
    state.norm = static_cast<float>(norm);
    state.found_infinity = !std::isfinite(norm) || scale == 0;
    const double clipped = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
    state.coefficient = static_cast<float>(clipped / scale);
  }
};

}  // namespace

template <>
Made<Optimizer> make_reference(const OptimizerDesc& d) {
  return by_type<Optimizer, ReferenceOptimizer>(d.master, d);
}

template <>
Made<GradientNorm> make_reference(const GradientNormDesc& d) {
  if (!is_float(d.gradient)) return no_type<GradientNorm>(d.gradient);
  return std::unique_ptr<GradientNorm>(std::make_unique<ReferenceGradientNorm>(d));
}

}  // namespace assay::ops::reference
