// One element's step of AdamW and of SGD with momentum, in float or double. Constants are computed once per pass.
#pragma once

#include "workloads/ops/functors/math.h"
#include "workloads/ops/optimizer.h"

namespace assay::ops::functors {

// The descriptor's constants as plain numbers, which can be passed to a kernel.
struct StepConstants {
  double beta1;
  double beta2;
  double epsilon;
  double momentum;

  explicit StepConstants(const OptimizerDesc& d)
      : beta1(d.beta1), beta2(d.beta2), epsilon(d.epsilon), momentum(d.momentum) {}
};

// Loshchilov & Hutter 2019, algorithm 2, in torch.optim.AdamW's order: decay first, then the step.
template <typename T>
struct AdamwUpdate {
  T beta1, beta1_rest;  // rest: 1 - beta
  T beta2, beta2_rest;
  T epsilon;
  T coefficient;              // gradients are multiplied by it
  T learning_rate;            // scales the decay
  T step_size;                // learning rate / (1 - beta1^step)
  T inverse_root_correction;  // 1 / sqrt(1 - beta2^step)

  AdamwUpdate() = default;
  AdamwUpdate(const OptimizerDesc& d, const StepState& s) : AdamwUpdate(StepConstants(d), s) {}
  ASSAY_HOST_DEVICE AdamwUpdate(const StepConstants& d, const StepState& s)
      : beta1(T(d.beta1)),
        beta1_rest(T(1 - d.beta1)),
        beta2(T(d.beta2)),
        beta2_rest(T(1 - d.beta2)),
        epsilon(T(d.epsilon)),
        coefficient(T(s.coefficient)),
        learning_rate(T(s.learning_rate)),
        step_size(T(double(s.learning_rate) / (1 - std::pow(d.beta1, double(s.step))))),
        inverse_root_correction(T(1 / std::sqrt(1 - std::pow(d.beta2, double(s.step))))) {}

  // `keep` is 1 - learning_rate * decay of the element's segment.
  ASSAY_HOST_DEVICE T keep(double decay) const { return T(std::fma(-double(learning_rate), decay, 1.0)); }

  ASSAY_HOST_DEVICE void operator()(T& weight, T& moment1, T& moment2, T gradient, T kept) const {
    const T g = gradient * coefficient;
    moment1 = fma(beta1, moment1, beta1_rest * g);
    moment2 = fma(beta2, moment2, beta2_rest * g * g);
    const T denominator = fma(sqrt(moment2), inverse_root_correction, epsilon);
    weight = fma(-step_size, moment1 / denominator, weight * kept);
  }
};

// velocity = momentum * velocity + (g + decay * weight); weight -= learning rate * velocity.
template <typename T>
struct SgdUpdate {
  T momentum;
  T coefficient;
  T learning_rate;

  SgdUpdate() = default;
  SgdUpdate(const OptimizerDesc& d, const StepState& s) : SgdUpdate(StepConstants(d), s) {}
  ASSAY_HOST_DEVICE SgdUpdate(const StepConstants& d, const StepState& s)
      : momentum(T(d.momentum)), coefficient(T(s.coefficient)), learning_rate(T(s.learning_rate)) {}

  ASSAY_HOST_DEVICE void operator()(T& weight, T& velocity, T gradient, T decay) const {
    velocity = fma(momentum, velocity, fma(decay, weight, gradient * coefficient));
    weight = fma(-learning_rate, velocity, weight);
  }
};

}  // namespace assay::ops::functors
