#include "workloads/planning/memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace assay::planning {

namespace {

using architecture::Architecture;
using architecture::Layer;
using architecture::Part;
using architecture::Split;
using architecture::Weight;

// Tokens of a micro-batch on a rank.
double tokens_of(const Step& step, const Layout& layout) {
  return real(step.micro_batch) * std::ceil(real(step.seq) / real(layout.cp));
}

struct Widths {
  double whole = 0;    // elements of a token that tensor parallelism does not divide, but with sp
  double divided = 0;  // that it divides
  double stats = 0;    // f32 of a token, divided or not: too few to matter

  double bytes(const Step& step, const Layout& layout) const {
    const double t = real(layout.tp);
    return (whole / (layout.sp ? t : 1) + divided / t) * step.element_bytes() + 4 * stats;
  }
};

bool trains(const Step& step, const Layer& layer, bool attention) {
  if (step.method == Method::full) return true;
  return std::ranges::any_of(layer.weights, [&](const Weight& weight) {
    return (weight.part == Part::attention) == attention && is_target(step, weight);
  });
}

double adapters(const Step& step, const Layer& layer) {
  double ranks = 0;
  for (const Weight& weight : layer.weights)
    if (is_target(step, weight)) ranks += real(step.lora_rank * weight.used);
  return ranks;
}

// What a layer keeps of each token: inputs and outputs of its norms, queries, keys, values and what attention makes of
// them, but no scores, and of MLPs what activations need and make. Frozen matrices do not need their inputs.
Widths kept(const Architecture& model, const Step& step, const Layer& layer) {
  const architecture::Attention& attention = layer.attention;
  const double h = real(model.width);
  if (step.recompute == Recompute::full) return {.whole = h};
  const bool outputs = step.recompute == Recompute::none;
  const bool of_attention = outputs && trains(step, layer, true), of_mlp = outputs && trains(step, layer, false);
  Widths sum;
  // Norms after a part keep their inputs only.
  const double inputs = real(layer.norms);
  const bool shared_norm = layer.norms == 1;
  sum.whole =
      h * (inputs + (shared_norm ? (of_attention || of_mlp ? 1 : 0) : (of_attention ? 1 : 0) + (of_mlp ? 1 : 0)));
  const double queries = real(attention.heads * attention.key_dim), keys = real(attention.kv_heads * attention.key_dim);
  sum.divided = queries + keys + real((attention.heads + attention.kv_heads) * attention.value_dim);
  for (const Weight& weight : layer.weights) {
    // Latents of multi-head latent attention, before and after their norm; queries and keys before theirs.
    if (weight.part == Part::attention && weight.split == Split::none) sum.whole += 2 * real(weight.out);
    if (weight.name == "q_norm") sum.divided += queries;
    if (weight.name == "k_norm") sum.divided += keys;
  }
  const double before = model.gated ? 2 : 1, after = of_mlp ? 1 : 0;
  sum.divided += real(layer.mlp_width) * (before + after);
  // Each expert that a token uses has its own copy of the token, and its own output until the router weighs them.
  const double used = real(layer.experts_used);
  sum.divided += used * real(layer.expert_width) * (before + after);
  if (used > 0) sum.whole += used * h * (1 + (of_mlp ? 1 : 0));
  sum.divided += adapters(step, layer);
  sum.stats = real(attention.heads + layer.norms + 2 * layer.experts);
  return sum;
}

// Gradients of one part of a layer while its backward pass runs.
double backward(const Architecture& model, const Step& step, const Layout& layout, const Layer& layer) {
  const double h = real(model.width);
  const architecture::Attention& a = layer.attention;
  const double gates = model.gated ? 3 : 2;
  const Widths attention{.whole = 2 * h, .divided = real((a.heads + a.kv_heads) * (a.key_dim + a.value_dim))};
  const Widths mlp{.whole = 2 * h + real(layer.experts_used) * h,
                   .divided = gates * real(layer.mlp_width + layer.experts_used * layer.expert_width)};
  return std::max(attention.bytes(step, layout), mlp.bytes(step, layout));
}

// As Assay's own step chooses them, for a GPU.
double logits_block(std::uint64_t device_bytes) {
  return static_cast<double>(
      std::clamp(std::bit_floor(device_bytes / 16), std::uint64_t{128} << 20, std::uint64_t{4} << 30));
}

double all_logits(const Architecture& model, const Step& step, const Layout& layout) {
  const double classes = real(model.labels > 0 ? model.labels : model.vocabulary);
  const double rows = model.labels > 0 ? real(step.micro_batch) : tokens_of(step, layout);
  return rows * std::ceil(classes / real(layout.tp)) * step.element_bytes();
}

// Where weights, gradients and moments lie, and how much of them a rank has.
struct Placement {
  double weights = 0, gradients = 0, optimizer = 0, host = 0;
};

Placement place(const Step& step, const Layout& layout, const State& state, double ranks) {
  const bool f32 = step.precision == Precision::f32;
  const auto part = [&](int stage) { return layout.zero >= stage ? ranks : 1.0; };
  const double frozen = state.frozen / part(3), masters = 4 * state.trained / part(f32 ? 3 : 1);
  const double copies = f32 ? 0 : 2 * state.trained / part(3);
  Placement at;
  at.gradients = 4 * state.trained / part(2), at.optimizer = state.optimizer / part(1);
  at.weights = frozen + copies + masters;
  if (step.offload == Offload::none) return at;
  // In f32 a master is the weight itself, which the device needs unless weights are offloaded too.
  const double moved = f32 && step.offload == Offload::optimizer ? 0 : masters;
  at.host = at.optimizer + moved;
  at.weights -= moved, at.optimizer = 0;
  if (step.offload == Offload::weights) {
    at.host += at.weights + at.gradients;
    at.weights = at.gradients = 0;
  }
  return at;
}

// A unit's weights in the step's precision and, if trained, gradients: what is on the device while it is computed.
struct Unit {
  double weights = 0, gradients = 0;
};

Unit unit_of(const Step& step, const Divided& state) {
  const double trained = state.shared.trained + state.experts.trained;
  return {trained * step.element_bytes() + state.shared.frozen + state.experts.frozen, 4 * trained};
}

}  // namespace

std::vector<StageMemory> memory_of(const Architecture& model, const Step& step, const Layout& layout,
                                   std::uint64_t device_bytes) {
  const double tokens = tokens_of(step, layout);
  struct Kind {
    Divided state;
    double kept = 0, again = 0, backward = 0;
  };
  std::vector<Kind> kinds;
  Step whole = step;
  whole.recompute = Recompute::none;
  for (const Layer& layer : model.kinds) {
    const double bytes = kept(model, step, layer).bytes(step, layout) * tokens;
    kinds.push_back(
        {state_of(model, step, layout, layer.weights), bytes,
         step.recompute == Recompute::none ? 0 : kept(model, whole, layer).bytes(step, layout) * tokens - bytes,
         backward(model, step, layout, layer) * tokens});
  }
  const Divided first = state_of(model, step, layout, model.first), last = state_of(model, step, layout, model.last);
  // A tied table lies on both ends of a pipeline.
  const bool twice = model.tied && layout.pp > 1;
  const Divided table = twice ? state_of(model, step, layout, {model.first.front()}) : Divided();
  std::vector<StageMemory> all;
  for (const Stage& stage : stages_of(model, step, layout)) {
    StageMemory memory{.stage = stage, .terms = {}, .host = 0};
    Divided state;
    Unit largest, layer_unit;
    double working = 0;
    const auto add = [&](const Divided& more, double times) {
      state.shared += more.shared * times;
      state.experts += more.experts * times;
      const Unit unit = unit_of(step, more);
      largest.weights = std::max(largest.weights, unit.weights);
      largest.gradients = std::max(largest.gradients, unit.gradients);
    };
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (stage.layers[i] == 0) continue;
      add(kinds[i].state, real(stage.layers[i]));
      const Unit unit = unit_of(step, kinds[i].state);
      layer_unit = {std::max(layer_unit.weights, unit.weights), std::max(layer_unit.gradients, unit.gradients)};
      memory.terms.activations += kinds[i].kept * real(stage.layers[i]) * stage.in_flight;
      working = std::max(working, kinds[i].backward + kinds[i].again);
    }
    if (stage.first) add(first, 1);
    if (stage.last) add(last, 1);
    if (stage.last && twice) add(table, 1);
    Placement at = place(step, layout, state.shared, real(layout.copies()));
    const Placement experts = place(step, layout, state.experts, real(layout.copies()) / real(layout.ep));
    at.weights += experts.weights, at.gradients += experts.gradients, at.optimizer += experts.optimizer;
    memory.terms.weights = at.weights, memory.terms.gradients = at.gradients, memory.terms.optimizer = at.optimizer;
    memory.host = at.host + experts.host;
    // The last norm's input, output and gradient, and a block of logits; or the layer whose backward pass runs.
    const double hidden = 3 * real(model.width) * step.element_bytes() * tokens / (layout.sp ? real(layout.tp) : 1);
    const double ends = stage.last ? hidden + std::min(all_logits(model, step, layout), logits_block(device_bytes)) : 0;
    memory.terms.workspace = std::max(ends, working + (stage.last ? hidden / 3 : 0)) +
                             step.element_bytes() * std::max(state.shared.largest_matrix, state.experts.largest_matrix);
    const bool gathers = (layout.zero >= 3 && layout.copies() > 1) || step.offload == Offload::weights;
    // The unit that is computed, the layer that is fetched ahead, and gradients on their way to their owners: of the
    // largest unit, or of a layer and the one before it.
    const double moving = std::max(largest.gradients, 2 * layer_unit.gradients);
    if (gathers)
      memory.terms.communication = largest.weights + layer_unit.weights + moving;
    else if (layout.zero == 2 && layout.copies() > 1)
      memory.terms.communication = moving;
    all.push_back(std::move(memory));
  }
  return all;
}

double largest(const std::vector<StageMemory>& stages) {
  double most = 0;
  for (const StageMemory& each : stages) most = std::max(most, each.terms.total());
  return most;
}

double whole_logits(const Architecture& model, const Step& step, const Layout& layout, std::uint64_t device_bytes) {
  if (model.labels > 0) return 0;
  const double logits = all_logits(model, step, layout) / step.element_bytes();
  // Logits and their gradient in the step's precision, and both in f32.
  return std::max(0.0, logits * (2 * step.element_bytes() + 8) -
                           std::min(logits * step.element_bytes(), logits_block(device_bytes)));
}

}  // namespace assay::planning
