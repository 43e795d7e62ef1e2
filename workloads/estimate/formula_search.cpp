#include "workloads/estimate/formula_search.h"

#include "harness/core/error.h"
#include "harness/core/words.h"
#include "workloads/estimate/sets.h"
#include "workloads/training/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::estimate {

namespace {

constexpr std::int64_t max_samples = 4096, max_gpus = 1024, gpus_of_a_host = 8;

std::vector<std::int64_t> powers_up_to(std::int64_t max) {
  std::vector<std::int64_t> all;
  for (std::int64_t power = 1; power <= max; power *= 2) all.push_back(power);
  return all;
}

}  // namespace

FormulaSearch::FormulaSearch(const Asked& asked, const std::vector<std::int64_t>& gpus) {
  const FormulaEstimate estimate(asked);
  model_ = estimate.model(), step_ = estimate.step();
  tensor_ = powers_up_to(gpus_of_a_host);
  // A stage more than there are micro-batches would never be busy.
  stages_ = powers_up_to(std::min(step_.accumulate, model_.layers()));
  for (const auto& [name, value] : pairs_of(asked.sets)) {
    if (name == "tp") tensor_ = {estimate.layout().tp};
    if (name == "pp") stages_ = {estimate.layout().pp};
  }
  const std::int64_t min_gpus = tensor_.front() * stages_.front();
  for (const std::int64_t count : gpus)
    if (count % min_gpus != 0)
      throw UsageError(fmt::format("size: --count {}: tp x pp = {} do not divide it; use {}", count, min_gpus,
                                   (count + min_gpus - 1) / min_gpus * min_gpus));
}

std::optional<FormulaSearch::Attempt> FormulaSearch::attempt(planning::Step step, planning::Layout layout,
                                                             const planning::Device& device) const {
  layout.sp = layout.tp > 1 && step.micro_batch * step.seq % layout.tp == 0;
  if (planning::problem_of(model_, step, layout)) return std::nullopt;
  const auto stages = planning::memory_of(model_, step, layout, static_cast<std::uint64_t>(device.bytes));
  return Attempt{step, layout, planning::largest(stages) + device.allowance(layout.ranks())};
}

parallel::Held FormulaSearch::on(const HardwareSheet& sheet, std::int64_t gpus) const {
  const planning::Device device = device_of(sheet);
  std::optional<Attempt> smallest;
  for (const auto recompute : {planning::Recompute::none, planning::Recompute::selective, planning::Recompute::full})
    for (const std::int64_t pp : stages_)
      for (const std::int64_t tp : tensor_) {
        if (gpus % (tp * pp) != 0) continue;
        for (const bool gathers : {false, true}) {
          std::optional<Attempt> best;
          planning::Step step = step_;
          step.recompute = recompute;
          for (step.micro_batch = 1; step.micro_batch <= max_samples; step.micro_batch *= 2) {
            bool larger = false;
            for (int zero = gathers ? parallel::max_zero : 0; zero <= (gathers ? parallel::max_zero : 2); ++zero) {
              const planning::Layout layout{.dp = gpus / (tp * pp), .tp = tp, .pp = pp, .zero = zero};
              if (zero > 0 && layout.dp == 1) continue;
              const auto made = attempt(step, layout, device);
              if (!made) continue;
              if (!smallest || made->bytes < smallest->bytes) smallest = made;
              if (larger || made->bytes > device.bytes) continue;
              best = made;
              larger = true;
            }
            if (!larger) break;
          }
          if (best) return held(*best, device, true);
        }
      }
  if (!smallest)
    throw UsageError(
        fmt::format("size: --count {}: no tp and pp that divide {} also divide {}", gpus, gpus, model_.name));
  return held(*smallest, device, false);
}

// Of a training step: two for each weight that is multiplied by and each of three passes, and attention.
// Frozen matrices have no gradient of their own.
double FormulaSearch::flops_of_token() const {
  double flops = 0;
  const auto add = [&](const std::vector<architecture::Weight>& weights) {
    for (const architecture::Weight& weight : weights) {
      if (weight.in <= 1) continue;
      const double matrix = 2 * planning::real(weight.in) * planning::real(weight.out) * planning::real(weight.used);
      flops += matrix * (step_.method == planning::Method::full ? 3 : 2);
      if (planning::is_target(step_, weight))
        flops += 6 * planning::real(step_.lora_rank * weight.used) * planning::real(weight.in + weight.out);
    }
  };
  for (const std::size_t kind : model_.order) {
    const architecture::Layer& layer = model_.kinds.at(kind);
    add(layer.weights);
    const architecture::Attention& a = layer.attention;
    // Tokens that a token attends to: all, or those before it, in a window at most.
    const double seq = planning::real(step_.seq);
    const double back = a.window > 0 ? std::min(planning::real(a.window), seq) : seq;
    const double attended = model_.causal ? back - back * back / (2 * seq) : seq;
    flops += 6 * attended * planning::real(a.heads * (a.key_dim + a.value_dim));
  }
  add(model_.last);
  if (model_.tied)
    flops += 2 * planning::real(model_.vocabulary * model_.width) * (step_.method == planning::Method::full ? 3 : 2);
  return flops;
}

parallel::Held FormulaSearch::held(const Attempt& made, const planning::Device& device, bool fits) const {
  const planning::Layout& layout = made.layout;
  const double parts = planning::real(layout.tp * layout.pp), copies = planning::real(layout.dp);
  const double tokens = planning::real(made.step.micro_batch * made.step.accumulate * made.step.seq) / parts;
  const auto stages = planning::memory_of(model_, made.step, layout, static_cast<std::uint64_t>(device.bytes));
  double bytes = 0, sent = 0;
  for (const planning::StageMemory& stage : stages)
    bytes = std::max(bytes, stage.terms.weights + stage.terms.gradients + 2 * stage.terms.optimizer);
  for (const planning::Traffic& each : planning::traffic_of(model_, made.step, layout, gpus_of_a_host))
    if (each.group == "tp" || each.group == "pp") sent += each.bytes;
  constexpr double min_gradient_bytes = 2;
  sent += min_gradient_bytes * planning::trained_parameters(model_, made.step) / parts * (copies - 1) / copies;
  return {.layout = {.dp = layout.dp, .tp = layout.tp, .pp = layout.pp, .zero = layout.zero},
          .micro_batch = made.step.micro_batch,
          .accumulate = made.step.accumulate,
          .checkpointing = word_of(static_cast<nn::Checkpointing>(made.step.recompute)),
          .total_bytes = static_cast<std::uint64_t>(std::ceil(made.bytes)),
          .fits = fits,
          .work = {.items = tokens,
                   .seq = made.step.seq,
                   .parameters = planning::real(model_.active_parameters()),
                   // While a pipeline fills and drains, a stage could compute as much again.
                   .flops = tokens * flops_of_token() / (1 - planning::bubble_of(made.step, layout)),
                   .bytes = bytes,
                   .exchanged = sent,
                   .precision = word_of(made.step.precision)}};
}

std::optional<std::int64_t> FormulaSearch::fewest_above(const HardwareSheet& sheet, std::int64_t gpus) const {
  const std::int64_t min_gpus = tensor_.front() * stages_.front();
  for (std::int64_t more = min_gpus; more <= max_gpus; more *= 2)
    if (more > gpus && on(sheet, more).fits) return more;
  return std::nullopt;
}

}  // namespace assay::estimate
