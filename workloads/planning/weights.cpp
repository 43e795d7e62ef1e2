#include "workloads/planning/weights.h"

#include <algorithm>
#include <cmath>

namespace assay::planning {

namespace {

using architecture::Architecture;
using architecture::Part;
using architecture::Split;
using architecture::Weight;

// Bytes of moments of `count` elements in a matrix of in x out, or vectors.
double moments(Optimizer optimizer, double in, double out) {
  const double count = in * out;
  switch (optimizer) {
    case Optimizer::adamw: return 8 * count;
    case Optimizer::sgd: return 4 * count;
    case Optimizer::adafactor: return in > 1 ? 4 * (in + out) : 4 * count;
    // Small ones keep f32, as in bitsandbytes.
    case Optimizer::adamw_8bit: return count < 4096 ? 8 * count : 2 * count + 8 * std::ceil(count / 256);
  }
  return 0;
}

// The part of a weight that one rank of tp has.
struct Shard {
  double in = 1, out = 1, bias = 0;
};

Shard shard_of(const Weight& weight, std::int64_t tp) {
  const bool outputs = weight.split == Split::outputs;
  return {.in = weight.split == Split::inputs ? std::ceil(real(weight.in) / real(tp)) : real(weight.in),
          .out = outputs ? std::ceil(real(weight.out) / real(tp)) : real(weight.out),
          .bias = weight.bias ? (outputs ? std::ceil(real(weight.out) / real(tp)) : real(weight.out)) : 0};
}

double optimizer_bytes(const Architecture& model, const Step& step, const Weight& weight, const Shard& shard) {
  // A table's rows are as wide as the model.
  if (weight.part == Part::embedding && weight.in == 1 && weight.out > model.width)
    return moments(step.optimizer, shard.out / real(model.width), real(model.width));
  return moments(step.optimizer, shard.in, shard.out) + moments(step.optimizer, 1, shard.bias);
}

}  // namespace

State& State::operator+=(const State& other) {
  frozen += other.frozen;
  trained += other.trained;
  optimizer += other.optimizer;
  trained_count += other.trained_count;
  largest_matrix = std::max(largest_matrix, other.largest_matrix);
  return *this;
}

State operator*(State state, double times) {
  state.frozen *= times, state.trained *= times, state.optimizer *= times, state.trained_count *= times;
  return state;
}

double frozen_bits(const Architecture& model, const Step& step, const Weight& weight) {
  const double stored = model.stored_bits(weight, 8 * step.element_bytes());
  return step.method == Method::qlora && weight.linear() && !model.stored ? nf4_bits : stored;
}

bool is_target(const Step& step, const Weight& weight) {
  if (step.method == Method::full || !weight.linear()) return false;
  const bool attention = weight.part == Part::attention;
  return step.lora_targets == Targets::all || (step.lora_targets == Targets::attention) == attention;
}

Divided state_of(const Architecture& model, const Step& step, const Layout& layout,
                 const std::vector<Weight>& weights) {
  Divided all;
  for (const Weight& weight : weights) {
    const bool expert = weight.part == Part::experts;
    const double copies = expert ? std::ceil(real(weight.copies) / real(layout.ep)) : real(weight.copies);
    const Shard shard = shard_of(weight, layout.tp);
    State state;
    if (step.method == Method::full) {
      state.trained = shard.in * shard.out + shard.bias;
      state.optimizer = optimizer_bytes(model, step, weight, shard);
      state.trained_count = real(weight.one());
    } else {
      // Biases are small and stay in the step's precision.
      state.frozen = shard.in * shard.out * frozen_bits(model, step, weight) / 8 + shard.bias * step.element_bytes();
      if (is_target(step, weight)) {
        const double rank = real(step.lora_rank);
        state.trained = rank * (shard.in + shard.out);
        state.optimizer = moments(step.optimizer, shard.in, rank) + moments(step.optimizer, rank, shard.out);
        state.trained_count = rank * real(weight.in + weight.out);
      }
      if (frozen_bits(model, step, weight) < 8 * step.element_bytes()) state.largest_matrix = shard.in * shard.out;
    }
    State sum = state * copies;
    sum.trained_count = state.trained_count * real(weight.copies);
    (expert ? all.experts : all.shared) += sum;
  }
  return all;
}

namespace {

// A member of Divided, over the whole model.
double trained_of(const Architecture& model, const Step& step, State Divided::*part) {
  const auto of = [&](const std::vector<Weight>& weights) {
    return (state_of(model, step, {}, weights).*part).trained_count;
  };
  double total = of(model.first) + of(model.last);
  std::vector<double> kinds;
  kinds.reserve(model.kinds.size());
  for (const architecture::Layer& kind : model.kinds) kinds.push_back(of(kind.weights));
  for (const std::size_t kind : model.order) total += kinds[kind];
  return total;
}

}  // namespace

double trained_parameters(const Architecture& model, const Step& step) {
  return trained_of(model, step, &Divided::shared) + trained_experts(model, step);
}

double trained_experts(const Architecture& model, const Step& step) {
  return trained_of(model, step, &Divided::experts);
}

}  // namespace assay::planning
