#include "workloads/nn/fp8_scales.h"

namespace assay::nn {

namespace {

std::size_t float_bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

}  // namespace

Fp8Scales::Fp8Scales(const StepPlan& plan, const StepMemory& memory, Device& device)
    : plan_(plan),
      at_(memory.scales()),
      device_(device),
      count_(static_cast<std::int64_t>(plan.layout.rounded.size())) {}

void Fp8Scales::initialise(Stream& stream) const {
  if (!any()) return;
  const std::vector<float> ones(static_cast<std::size_t>(count_), 1.0f);
  device_.copy(at_.scale, ones.data(), float_bytes(count_), stream);
  device_.copy(at_.inverse, ones.data(), float_bytes(count_), stream);
  device_.zero(at_.history, float_bytes(count_ * fp8_scaling.history), stream);
  stream.synchronize();
}

void Fp8Scales::reset_magnitudes(Stream& stream) const {
  if (any()) device_.zero(at_.amax, float_bytes(count_), stream);
}

void Fp8Scales::all_reduce(Communicator& comm, Stream& stream) const {
  comm.all_reduce(at_.amax, at_.amax, static_cast<std::size_t>(count_), DType::f32, ReduceOp::max, stream);
}

void Fp8Scales::update(ops::StepState* state, Stream& stream) const {
  if (!any()) return;
  plan_.update_scales->run(stream, {.amax = at_.amax,
                                    .history = at_.history,
                                    .largest = at_.largest,
                                    .scale = at_.scale,
                                    .inverse = at_.inverse,
                                    .state = state,
                                    .workspace = nullptr});
}

void Fp8Scales::use_current_magnitude(std::size_t slot, Stream& stream) const {
  // Uses the oldest entry of the history, which the next update drops, as a history of length 1.
  plan_.update_one_scale->run(stream, {.amax = at_.amax + slot,
                                       .history = at_.history + slot * static_cast<std::size_t>(fp8_scaling.history),
                                       .largest = at_.largest + slot,
                                       .scale = at_.scale + slot,
                                       .inverse = at_.inverse + slot,
                                       .state = nullptr,
                                       .workspace = nullptr});
}

std::vector<StatePart> Fp8Scales::state() const {
  if (!any()) return {};
  return {{"fp8/scale", DType::f32, {count_}, at_.scale, float_bytes(count_)},
          {"fp8/inverse_scale", DType::f32, {count_}, at_.inverse, float_bytes(count_)},
          {"fp8/amax_history",
           DType::f32,
           {count_, fp8_scaling.history},
           at_.history,
           float_bytes(count_ * fp8_scaling.history)}};
}

}  // namespace assay::nn
