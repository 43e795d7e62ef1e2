#include "workloads/estimate/memory_estimate.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "workloads/estimate/sets.h"
#include "workloads/nn/planning_backend.h"
#include "workloads/training/planned_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::estimate {

namespace {

constexpr double max_number = 1e9;

// A case's memory depends on these of its parameters, then on the layout's.
Schema settable(const training::ModelFamily& family) {
  static const std::set<std::string> of_a_case = {"micro_batch", "accumulate",    "seq",
                                                  "precision",   "checkpointing", "zero"};
  Schema schema;
  for (const ParamSpec& spec : training::training_schema(family))
    if (of_a_case.contains(spec.name)) schema.emplace_back(spec).sweep.clear();  // an estimate is of one case
  // Limits of the layout are parallel::problem_of's, which says more.
  for (const char* name : {"dp", "tp", "pp"})
    schema.push_back(axis::integer(name, 1).range(0, max_number).doc("ranks"));
  return schema;
}

// Throws UsageError for one that cannot be planned.
parallel::Layout layout_of(const Params& params) {
  const parallel::Layout layout{.dp = params.integer("dp"),
                                .tp = params.integer("tp"),
                                .pp = params.integer("pp"),
                                .zero = static_cast<int>(params.integer("zero"))};
  if (const auto problem = parallel::problem_of(layout)) throw UsageError(*problem);
  return layout;
}

std::string text_of(const std::vector<Change>& changes) {
  std::vector<std::string> texts;
  texts.reserve(changes.size());
  for (const auto& [name, value] : changes) texts.push_back(fmt::format("{}={}", name, to_string(value)));
  return fmt::format("{}", fmt::join(texts, ","));
}

}  // namespace

nn::DeviceProfile profile_of(const HardwareSheet& sheet) {
  return {sheet.kind == "cpu" ? DeviceKind::cpu : DeviceKind::cuda, sheet.memory_bytes.value_or(0)};
}

MemoryEstimator::MemoryEstimator(const std::string& model)
    : loaded_(load_model(find_config("models", "model", model))),
      schema_(settable(*loaded_.family)),
      params_(training::default_params(*loaded_.family)) {
  for (const ParamSpec& spec : schema_) params_.set(spec.name, spec.defaults.front());
  params_.set("model", model);
  params_.set("precision", std::string("bf16"));  // what machines are bought and rented for
}

void MemoryEstimator::set(const std::vector<std::string>& texts) {
  set_params(schema_, pairs_of(texts), params_);
  check_precision();
}

nn::DeviceProfile MemoryEstimator::profile() const {
  if (hardware_) return profile_of(*hardware_);
  return {precision() == "f32" || precision() == "bf16" ? DeviceKind::cpu : DeviceKind::cuda, 0};
}

void MemoryEstimator::check_precision() const {
  if (!hardware_) return;
  if (device() == DeviceKind::cpu && precision() != "f32" && precision() != "bf16")
    throw UsageError(
        fmt::format("precision={}: CPUs train in f32 and bf16, and {} is a CPU", precision(), hardware_->name));
  if (precision() == "fp8" && !hardware_->peak.contains("fp8_e4m3"))
    throw UsageError(
        fmt::format("precision=fp8: {} does not multiply in 8 bits; use precision=bf16 or fp16", hardware_->name));
}

// Sizes are counted in 64 bits.
void MemoryEstimator::check_size(const training::Settings& settings) const {
  constexpr double max_bytes = 1e18, widest = 8;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  double columns = 1e9;  // of all images' layers, generously
  if (const auto& c = loaded_.language) {
    const double heads = real(c->heads + 2 * c->kv_heads) * real(c->head_dim);
    columns = real(c->layers) * (16 * real(c->width) + 4 * heads + 8 * real(c->mlp_width)) + 4 * real(c->vocabulary);
  }
  const double samples = real(settings.micro_batch) * real(settings.items_per_sample());
  if (samples * columns * widest <= max_bytes && samples * real(settings.accumulate) <= max_bytes / 64) return;
  throw UsageError(fmt::format(
      "micro_batch={} x accumulate={}: the activations are beyond what can be counted; the nearest is about "
      "micro_batch={:.0f}",
      settings.micro_batch, settings.accumulate,
      std::max(1.0, max_bytes / (columns * widest * real(settings.items_per_sample())))));
}

MemoryEstimate MemoryEstimator::estimate() const { return with({}); }

Params MemoryEstimator::params_with(const std::vector<Change>& changes) const {
  Params params = params_;
  for (const auto& [name, value] : changes) params.set(name, value);
  return params;
}

training::Settings MemoryEstimator::settings_of(const Params& params) const {
  training::Settings settings = training::settings_from(*loaded_.family, params, 1);
  check_size(settings);
  return settings;
}

nn::StepPlan MemoryEstimator::plan_of(const training::Settings& settings, const parallel::Layout& layout) const {
  nn::StepOptions options = settings.step_options();
  options.layout = layout;
  return {*settings.model, options, profile(), nn::make_planning_backend(device())};
}

MemoryEstimate MemoryEstimator::estimate_of(const training::Settings& settings, const parallel::Layout& layout,
                                            const nn::MemoryPlan& memory) const {
  MemoryEstimate made{settings, layout, memory, 0};
  if (device() != DeviceKind::cpu)
    made.allowance = training::gpu_libraries_bytes + (layout.dp > 1 ? training::gpu_communication_bytes : 0);
  return made;
}

MemoryEstimate MemoryEstimator::with(const std::vector<Change>& changes) const {
  const Params params = params_with(changes);
  const parallel::Layout layout = layout_of(params);
  const training::Settings settings = settings_of(params);
  return estimate_of(settings, layout, plan_of(settings, layout).memory);
}

// Plans each stage of ZeRO once: another number of ranks only changes what they divide.
std::vector<MemoryEstimate> MemoryEstimator::on(const std::vector<Change>& changes,
                                                std::span<const parallel::Layout> layouts) const {
  const training::Settings settings = settings_of(params_with(changes));
  std::map<int, std::unique_ptr<const nn::StepPlan>> plans;  // by stage; of 0 if there is nobody to divide with
  std::vector<MemoryEstimate> all;
  for (const parallel::Layout& layout : layouts) {
    auto& plan = plans[layout.divides() ? layout.zero : 0];
    if (!plan) plan.reset(new nn::StepPlan(plan_of(settings, layout)));
    all.push_back(estimate_of(settings, layout, plan->memory_on(layout.dp)));
  }
  return all;
}

std::optional<bool> MemoryEstimator::fits(const MemoryEstimate& estimate) const {
  if (!hardware_ || !hardware_->memory_bytes) return std::nullopt;
  return estimate.total() <= *hardware_->memory_bytes;
}

std::optional<Alternative> MemoryEstimator::fitting(const std::vector<Change>& changes) const {
  try {
    MemoryEstimate made = with(changes);
    if (fits(made).value_or(false)) return Alternative{text_of(changes), std::move(made)};
  } catch (const UsageError&) {
    // Not of this model: selective recomputation is for transformers.
  }
  return std::nullopt;
}

// The largest micro-batch that fits, by halving the interval: memory grows with it.
std::optional<Alternative> MemoryEstimator::with_smaller_batch(std::vector<Change> changes) const {
  std::int64_t too_large = with(changes).settings.micro_batch, fit = 0;
  std::optional<Alternative> best;
  changes.emplace_back("micro_batch", std::int64_t{1});
  const auto attempt = [&](std::int64_t samples) {
    changes.back().second = samples;
    auto found = fitting(changes);
    if (found) best = std::move(found);
    (best && best->estimate.settings.micro_batch == samples ? fit : too_large) = samples;
  };
  if (too_large > 1) attempt(1);
  while (best && too_large - fit > 1) attempt(fit + (too_large - fit) / 2);
  return best;
}

std::optional<Alternative> MemoryEstimator::with_more_ranks(const std::vector<Change>& changes) const {
  constexpr std::int64_t max_ranks = 1024;  // beyond, what remains is not divided by ranks
  if (precision() == "fp8") return std::nullopt;
  std::vector<parallel::Layout> layouts;
  for (std::int64_t dp = std::max<std::int64_t>(2, params_.integer("dp")); dp <= max_ranks; dp *= 2)
    for (int zero = std::max(1, layout_of(params_).zero); zero <= parallel::max_zero; ++zero)
      layouts.push_back({.dp = dp, .zero = zero});
  std::vector<MemoryEstimate> planned;
  try {
    planned = on(changes, layouts);
  } catch (const UsageError&) {
    return std::nullopt;  // this model or precision cannot recompute that
  }
  for (MemoryEstimate& made : planned) {
    if (!fits(made).value_or(false)) continue;
    std::vector<Change> divided = changes;
    divided.emplace_back("dp", made.layout.dp);
    divided.emplace_back("zero", std::int64_t{made.layout.zero});
    return Alternative{text_of(divided), std::move(made)};
  }
  return std::nullopt;
}

std::vector<Alternative> MemoryEstimator::alternatives() const {
  std::vector<Alternative> all;
  const auto add = [&](std::optional<Alternative> found) {
    if (found) all.push_back(std::move(*found));
  };
  const std::vector<Change> selective = {{"checkpointing", std::string("selective")}};
  const std::vector<Change> full = {{"checkpointing", std::string("full")}};
  const std::string kept = params_.text("checkpointing");
  add(with_smaller_batch({}));
  if (kept == "none") add(fitting(selective));
  if (kept != "full") add(fitting(full));
  if (all.empty() && kept != "full") add(with_smaller_batch(full));
  const bool on_as_many = !all.empty();
  auto as_asked = with_more_ranks({});
  const auto ranks = [](const std::optional<Alternative>& found) { return found ? found->estimate.layout.dp : 0; };
  std::optional<Alternative> fewest;
  if (!on_as_many)
    for (const std::string_view word : nn::words(nn::Checkpointing{})) {
      auto found = with_more_ranks({{"checkpointing", std::string(word)}, {"micro_batch", std::int64_t{1}}});
      if (found && (!fewest || ranks(found) < ranks(fewest))) fewest = std::move(found);
    }
  const bool fewer = fewest && (!as_asked || ranks(fewest) < ranks(as_asked));
  add(std::move(as_asked));
  if (fewer) all.push_back(std::move(*fewest));
  return all;
}

}  // namespace assay::estimate
