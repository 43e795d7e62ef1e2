#include "workloads/estimate/formula_search.h"

#include "harness/core/error.h"
#include "harness/core/whole_number.h"
#include "harness/core/words.h"
#include "harness/machine/links.h"
#include "workloads/estimate/sets.h"
#include "workloads/training/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace assay::estimate {

namespace {

constexpr std::int64_t max_samples = 4096, max_gpus = 1024;

std::vector<std::int64_t> powers_up_to(std::int64_t max) {
  std::vector<std::int64_t> all;
  for (std::int64_t power = 1; power <= max; power *= 2) all.push_back(power);
  return all;
}

// With as many copies of the data as share the experts: alone, one rank could not. What cannot be is refused as `ep`.
Asked with_copies(Asked asked) {
  for (const auto& [name, value] : pairs_of(asked.sets))
    if (const auto ranks = whole_number<std::int64_t>(value);
        name == "ep" && ranks && *ranks >= 1 && *ranks <= parallel::max_dp)
      asked.sets.push_back("dp=" + value);
  return asked;
}

}  // namespace

FormulaSearch::FormulaSearch(const Asked& asked, const std::vector<std::int64_t>& gpus) {
  const FormulaEstimate estimate(with_copies(asked));
  model_ = estimate.model(), step_ = estimate.step(), chunks_ = estimate.layout().chunks;
  tensor_ = powers_up_to(gpus_of_a_host);
  // A stage more than there are micro-batches would never be busy.
  stages_ = powers_up_to(std::min(step_.accumulate, model_.layers()));
  sequences_ = powers_up_to(max_gpus);
  experts_ = {1};
  for (std::int64_t ep = 2; ep <= std::min(model_.experts(), parallel::max_dp); ++ep)
    if (model_.experts() % ep == 0) experts_.push_back(ep);
  offloads_ = {planning::Offload::none, planning::Offload::optimizer, planning::Offload::weights};
  for (const auto& [name, value] : pairs_of(asked.sets)) {
    if (name == "tp") tensor_ = {estimate.layout().tp};
    if (name == "pp") stages_ = {estimate.layout().pp};
    if (name == "ep") experts_ = {estimate.layout().ep};
    if (name == "cp") sequences_ = {estimate.layout().cp};
    if (name == "offload") offloads_ = {step_.offload};
  }
  if (min_gpus() > parallel::max_dp)
    throw UsageError(
        fmt::format("size: --set: these settings need {} GPUs, and at most {} are planned; use smaller ones",
                    min_gpus(), parallel::max_dp));
  for (const std::int64_t count : gpus)
    if (count % min_gpus() != 0)
      throw UsageError(
          fmt::format("size: --count {}: must be a multiple of {}, for tp x pp x cp, and ep of dp x cp; use {}", count,
                      min_gpus(), (count + min_gpus() - 1) / min_gpus() * min_gpus()));
}

std::int64_t FormulaSearch::min_gpus() const {
  return tensor_.front() * stages_.front() * std::lcm(sequences_.front(), experts_.front());
}

std::optional<FormulaSearch::Attempt> FormulaSearch::attempt(planning::Step step, planning::Layout layout,
                                                             const planning::Device& device) {
  layout.sp = layout.tp > 1 && step.micro_batch * step.seq % (layout.tp * layout.cp) == 0;
  const auto memory = static_cast<std::uint64_t>(device.bytes);
  // Blocks of logits are chosen by the power of two below a device's memory.
  const auto [found, fresh] = bytes_.try_emplace(
      {step.micro_batch, static_cast<std::int64_t>(step.recompute), static_cast<std::int64_t>(step.offload), layout.dp,
       layout.tp, layout.pp, layout.ep, layout.cp, layout.zero, static_cast<std::int64_t>(std::bit_floor(memory))});
  if (fresh && !planning::problem_of(model_, step, layout))
    found->second = planning::largest(planning::memory_of(model_, step, layout, memory));
  if (!found->second) return std::nullopt;
  return Attempt{step, layout, *found->second + device.allowance(layout.ranks())};
}

void FormulaSearch::try_batches(planning::Step step, planning::Layout layout, bool gathers,
                                const planning::Device& device, Best& best) {
  for (step.micro_batch = 1; step.micro_batch <= max_samples; step.micro_batch *= 2) {
    bool larger = false;
    for (layout.zero = gathers ? parallel::max_zero : 0; layout.zero <= (gathers ? parallel::max_zero : 2);
         ++layout.zero) {
      if (layout.zero > 0 && layout.copies() == 1) continue;
      const auto made = attempt(step, layout, device);
      if (!made) continue;
      if (!best.smallest || made->bytes < best.smallest->bytes) best.smallest = made;
      if (larger || made->bytes > device.bytes) continue;
      best.fits = made;
      larger = true;
    }
    if (!larger) return;
  }
}

void FormulaSearch::try_layouts(const planning::Step& step, std::int64_t cp, std::int64_t gpus,
                                const planning::Device& device, Best& best) {
  for (const std::int64_t pp : stages_)
    for (const std::int64_t tp : tensor_) {
      if (gpus % (tp * pp * cp) != 0) continue;
      planning::Layout layout{
          .dp = gpus / (tp * pp * cp), .tp = tp, .pp = pp, .chunks = pp > 1 ? chunks_ : 1, .cp = cp};
      for (const bool gathers : {false, true})
        for (const std::int64_t ep : experts_) {
          if (layout.copies() % ep != 0) continue;
          layout.ep = ep;
          try_batches(step, layout, gathers, device, best);
          if (best.fits) return;
        }
    }
}

parallel::Held FormulaSearch::on(const HardwareSheet& sheet, std::int64_t gpus) {
  const planning::Device device = device_of(sheet);
  Best best;
  const bool asked = offloads_.size() == 1;
  if (asked) check_offload(offloads_.front(), sheet);
  for (const planning::Offload offload : offloads_) {
    // How long it takes must be known, unless it was asked for; a CPU has no other memory.
    if (!asked && offload != planning::Offload::none && (sheet.kind != "gpu" || !pcie_link(sheet))) continue;
    for (const std::int64_t cp : sequences_)
      for (const auto recompute :
           {planning::Recompute::none, planning::Recompute::selective, planning::Recompute::full}) {
        planning::Step step = step_;
        step.offload = offload, step.recompute = recompute;
        try_layouts(step, cp, gpus, device, best);
        if (best.fits) return held(*best.fits, sheet, true);
      }
  }
  if (!best.smallest)
    throw UsageError(
        fmt::format("size: --count {}: no layout with these settings divides {} by as many", gpus, model_.name));
  return held(*best.smallest, sheet, false);
}

// Of a training step: two for each weight that is multiplied by and each of three passes, and attention.
// Frozen matrices have no gradient of their own.
double FormulaSearch::flops_of_token() const {
  double flops = 0;
  const auto add = [&](const std::vector<architecture::Weight>& weights, double part = 1) {
    for (const architecture::Weight& weight : weights) {
      if (weight.in <= 1) continue;
      const double matrix =
          2 * part * planning::real(weight.in) * planning::real(weight.out) * planning::real(weight.used);
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
  add(model_.last, of_images() ? 1 / planning::real(step_.seq) : 1);  // one row of an image is classified
  if (model_.tied)
    flops += 2 * planning::real(model_.vocabulary * model_.width) * (step_.method == planning::Method::full ? 3 : 2);
  return flops;
}

parallel::Held FormulaSearch::held(const Attempt& made, const HardwareSheet& sheet, bool fits) const {
  const planning::Layout& layout = made.layout;
  const planning::Device device = device_of(sheet);
  const double parts = planning::real(layout.tp * layout.pp), copies = planning::real(layout.copies());
  const double tokens = planning::real(made.step.micro_batch * made.step.accumulate * made.step.seq) /
                        (parts * planning::real(layout.cp));
  parallel::Held held{.layout = {.dp = layout.dp, .tp = layout.tp, .pp = layout.pp, .zero = layout.zero},
                      .ep = layout.ep,
                      .cp = layout.cp,
                      .chunks = layout.chunks,
                      .offload = word_of(made.step.offload),
                      .micro_batch = made.step.micro_batch,
                      .accumulate = made.step.accumulate,
                      .checkpointing = word_of(static_cast<nn::Checkpointing>(made.step.recompute)),
                      .total_bytes = counted(made.bytes),
                      .fits = fits,
                      .bubble = planning::bubble_of(made.step, layout)};
  double bytes = 0, sent = 0, host = 0;
  for (const planning::StageMemory& stage :
       planning::memory_of(model_, made.step, layout, static_cast<std::uint64_t>(device.bytes))) {
    bytes = std::max(bytes, stage.terms.weights + stage.terms.gradients + 2 * stage.terms.optimizer);
    host = std::max(host, stage.host);
  }
  for (const planning::Traffic& each : planning::traffic_of(model_, made.step, layout, gpus_of_a_host)) {
    held.sent.push_back(over_link(each.group, each.ranks, each.bytes, each.within_host, &sheet));
    if (each.group != "dp") sent += each.bytes;
  }
  // Gradients are reduced at least, of experts between those ranks that have the same ones.
  constexpr double min_gradient_bytes = 2;
  const double experts = planning::trained_experts(model_, made.step);
  sent += min_gradient_bytes / parts *
          ((planning::trained_parameters(model_, made.step) - experts) * (copies - 1) / copies +
           experts / planning::real(layout.ep) * (1 - planning::real(layout.ep) / copies));
  held.host_bytes = counted(host);
  held.work = {.items = of_images() ? tokens / planning::real(made.step.seq) : tokens,
               .seq = of_images() ? 0 : made.step.seq,
               .parameters = planning::real(model_.active_parameters()),
               // While a pipeline fills and drains, a stage could compute as much again.
               .flops = tokens * flops_of_token() / (1 - held.bubble),
               .bytes = bytes,
               .exchanged = sent,
               .offloaded = static_cast<double>(counted(planning::offload_bytes(model_, made.step, layout))),
               .precision = word_of(made.step.precision)};
  return held;
}

std::optional<std::int64_t> FormulaSearch::fewest_above(const HardwareSheet& sheet, std::int64_t gpus) {
  for (std::int64_t more = min_gpus(); more <= max_gpus; more *= 2)
    if (more > gpus && on(sheet, more).fits) return more;
  return std::nullopt;
}

}  // namespace assay::estimate
