#include "workloads/planning/traffic.h"

#include "workloads/planning/weights.h"

#include <algorithm>
#include <cmath>

namespace assay::planning {

namespace {

using architecture::Architecture;

// What a rank of n sends of each byte that a ring scatters or gathers.
double ring(std::int64_t n) { return real(n - 1) / real(n); }

struct StageBytes {
  double trained = 0, frozen = 0;  // of weights with copies on dp x cp ranks: elements, bytes
  double expert_trained = 0, expert_frozen = 0;
  double layers = 0, expert_layers = 0, used = 0, cached = 0;
};

StageBytes bytes_of(const Architecture& model, const Step& step, const Layout& layout, const Stage& stage) {
  StageBytes sum;
  const auto add = [&](const std::vector<architecture::Weight>& weights, double times) {
    const Divided state = state_of(model, step, layout, weights);
    sum.trained += times * state.shared.trained, sum.frozen += times * state.shared.frozen;
    sum.expert_trained += times * state.experts.trained, sum.expert_frozen += times * state.experts.frozen;
  };
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    const architecture::Layer& layer = model.kinds[i];
    const double count = real(stage.layers[i]);
    add(layer.weights, count);
    sum.layers += count;
    sum.used += count * real(layer.experts_used);
    sum.cached += count * real(layer.attention.kv_heads * (layer.attention.key_dim + layer.attention.value_dim));
  }
  if (stage.first) add(model.first, 1);
  if (stage.last) add(model.last, 1);
  if (stage.last && model.tied && layout.pp > 1) add({model.first.front()}, 1);
  return sum;
}

// Gradients are reduced in f32; weights are gathered in the step's precision, for zero=3 in each micro-batch twice.
double state_bytes(const Step& step, const Layout& layout, std::int64_t copies, double trained, double frozen) {
  if (copies <= 1) return 0;
  const double e = step.element_bytes(), m = real(step.accumulate);
  switch (layout.zero) {
    case 0: return ring(copies) * 2 * 4 * trained;
    case 1: return ring(copies) * (4 + e) * trained;
    case 2: return ring(copies) * (4 * m + e) * trained;
    default: return ring(copies) * m * (4 * trained + 2 * (e * trained + frozen));
  }
}

}  // namespace

std::vector<Traffic> traffic_of(const Architecture& model, const Step& step, const Layout& layout,
                                std::int64_t host_ranks) {
  const double e = step.element_bytes(), m = real(step.accumulate);
  const double tokens = real(step.micro_batch) * std::ceil(real(step.seq) / real(layout.cp));
  const double rows = tokens * real(model.width) * e;  // one tensor as wide as the model
  const double again = step.recompute == Recompute::full ? 1 : 0;
  double tensor = 0, context = 0, experts = 0, data = 0;
  for (const Stage& stage : stages_of(model, step, layout)) {
    const StageBytes sum = bytes_of(model, step, layout, stage);
    // Two sums in the forward and two in the backward pass; with sp as a scatter and a gather, and the inputs of both
    // parts are gathered once more for the gradients of weights.
    const double calls = (4 + 2 * again) * 2 + (layout.sp ? 2 : 0);
    tensor = std::max(tensor, m * sum.layers * calls * ring(layout.tp) * rows);
    // Keys and values pass all other ranks; in the backward pass again, with their gradients.
    const double keys = tokens * sum.cached / real(layout.tp) * e;
    context = std::max(context, m * (3 + again) * real(layout.cp - 1) * keys);
    // Tokens go to their experts and come back, and so do their gradients.
    experts =
        std::max(experts, m * (4 + 2 * again) * ring(layout.ep) * sum.used * rows / (layout.sp ? real(layout.tp) : 1));
    data = std::max(data,
                    state_bytes(step, layout, layout.copies(), sum.trained, sum.frozen) +
                        state_bytes(step, layout, layout.copies() / layout.ep, sum.expert_trained, sum.expert_frozen));
  }
  // To the next stage, and gradients back, for each chunk.
  const double boundary = rows / (layout.sp ? real(layout.tp) : 1);
  const double pipeline = layout.pp > 1 ? 2 * m * real(layout.chunks) * boundary : 0;
  std::vector<Traffic> all;
  const auto add = [&](const char* group, std::int64_t ranks, std::int64_t span, double bytes) {
    if (ranks > 1) all.push_back({.group = group, .ranks = ranks, .bytes = bytes, .within_host = span <= host_ranks});
  };
  add("tp", layout.tp, layout.tp, tensor);
  add("cp", layout.cp, layout.tp * layout.cp, context);
  add("ep", layout.ep, layout.tp * layout.ep, experts);
  add("dp", layout.copies(), layout.tp * layout.copies(), data);
  add("pp", layout.pp, layout.ranks(), pipeline);
  return all;
}

double offload_bytes(const Architecture& model, const Step& step, const Layout& layout) {
  if (step.offload == Offload::none) return 0;
  double most = 0;
  for (const Stage& stage : stages_of(model, step, layout)) {
    const StageBytes sum = bytes_of(model, step, layout, stage);
    const double divided = layout.zero >= 1 ? real(layout.copies()) : 1;
    const double trained = (sum.trained + sum.expert_trained * real(layout.zero >= 1 ? layout.ep : 1)) / divided;
    // Gradients go down in f32, new weights come up.
    double down = 4 * trained, up = step.element_bytes() * trained;
    if (step.offload == Offload::weights) {
      const double share = layout.zero >= 3 ? real(layout.copies()) : 1;
      const double weights =
          ((sum.trained + sum.expert_trained) * step.element_bytes() + sum.frozen + sum.expert_frozen) / share;
      const double passes = step.recompute == Recompute::full ? 3 : 2;
      up = passes * real(step.accumulate) * weights;
      down *= real(step.accumulate);
    }
    most = std::max({most, down, up});
  }
  return most;
}

}  // namespace assay::planning
