#include "workloads/estimate/layout_search.h"

#include "harness/core/error.h"
#include "workloads/estimate/formula.h"

#include <algorithm>

namespace assay::estimate {

namespace {

constexpr std::int64_t max_micro_batch = 4096, max_ranks = 1024;

MemoryEstimator make_estimator(const std::string& model, const std::vector<std::string>& sets) {
  MemoryEstimator made(model);
  made.set(sets);
  return made;
}

}  // namespace

LayoutSearch::LayoutSearch(std::string model, std::vector<std::string> sets, const std::vector<std::int64_t>& gpus)
    : model_(std::move(model)),
      sets_(std::move(sets)),
      estimator_(make_estimator(model_, sets_)),
      settings_(estimator_.estimate().settings) {
  std::set<std::int64_t> ranks(gpus.begin(), gpus.end());
  for (std::int64_t more = 1; more <= max_ranks; more *= 2) ranks.insert(more);
  for (const std::int64_t dp : ranks)
    for (int zero = 0; zero <= (dp > 1 && settings_.precision != "fp8" ? parallel::max_zero : 0); ++zero)
      layouts_.push_back({.dp = dp, .zero = zero});
}

const LayoutSearch::Plans& LayoutSearch::plans(const HardwareSheet& sheet, const Step& step) {
  const nn::DeviceProfile profile = profile_of(sheet);
  const std::pair key(profile.kind, nn::for_device({}, profile).logits_bytes);
  auto made = estimators_.find(key);
  if (made == estimators_.end()) {
    made = estimators_.emplace(key, MemoryEstimator(model_)).first;
    made->second.set_hardware(sheet);
    made->second.set({"precision=" + settings_.precision});
    made->second.set(sets_);
  }
  const auto [found, fresh] = plans_.try_emplace({&made->second, step});
  if (!fresh) return found->second;
  try {
    for (MemoryEstimate& each :
         made->second.on({{"checkpointing", step.first}, {"micro_batch", step.second}}, layouts_))
      found->second.try_emplace({each.layout.dp, each.layout.zero}, std::move(each));
  } catch (const UsageError&) {
    if (step.first == word_of(nn::Checkpointing::none)) throw;
    // This model or precision cannot recompute that.
  }
  return found->second;
}

parallel::Held LayoutSearch::held(const MemoryEstimate& estimate, const HardwareSheet& sheet, bool fits) const {
  const training::Settings& settings = estimate.settings;
  const auto samples = static_cast<double>(settings.micro_batch * settings.accumulate);
  const auto parameters = static_cast<double>(estimator_.loaded().parameters());
  const auto ranks = static_cast<double>(estimate.layout.dp);
  constexpr double least_gradient = 2;  // bytes
  const double exchanged = least_gradient * parameters * (ranks - 1) / ranks;
  parallel::Held held{.layout = estimate.layout,
                      .micro_batch = settings.micro_batch,
                      .accumulate = settings.accumulate,
                      .checkpointing = word_of(settings.checkpointing),
                      .total_bytes = estimate.total(),
                      .fits = fits};
  held.work = {
      .items = samples * static_cast<double>(settings.items_per_sample()),
      .seq = settings.seq,
      .parameters = parameters,
      .flops = samples * settings.model->cost({1, settings.seq}).training,
      // Weights are read, gradients written, moments read and written.
      .bytes = static_cast<double>(estimate.memory.weights + estimate.memory.gradients + 2 * estimate.memory.optimizer),
      .exchanged = exchanged,
      .precision = settings.precision};
  if (estimate.layout.dp > 1)
    held.sent = {over_link("dp", estimate.layout.dp, exchanged, estimate.layout.dp <= gpus_of_a_host, &sheet)};
  return held;
}

parallel::Held LayoutSearch::on(const HardwareSheet& sheet, std::int64_t gpus) {
  const std::uint64_t memory = sheet.memory_bytes.value();
  const MemoryEstimate* smallest = nullptr;
  for (const std::string_view word : nn::words(nn::Checkpointing{}))
    for (const bool gathers : {false, true}) {
      const MemoryEstimate* best = nullptr;
      for (std::int64_t samples = 1; samples <= max_micro_batch; samples *= 2) {
        const Plans& all = plans(sheet, {std::string(word), samples});
        bool larger = false;
        for (int zero = gathers ? parallel::max_zero : 0; zero <= (gathers ? parallel::max_zero : 2); ++zero) {
          const auto found = all.find({gpus, zero});
          if (found == all.end()) continue;
          const MemoryEstimate& made = found->second;
          if (!smallest || made.total() < smallest->total()) smallest = &made;
          if (made.total() > memory || larger) continue;
          best = &made;
          larger = true;
        }
        if (!larger) break;
      }
      if (best) return held(*best, sheet, true);
    }
  ASSAY_CHECK(smallest);
  return held(*smallest, sheet, false);
}

std::optional<std::int64_t> LayoutSearch::fewest_above(const HardwareSheet& sheet, std::int64_t gpus) {
  for (std::int64_t more = 1; more <= max_ranks; more *= 2)
    if (more > gpus && on(sheet, more).fits) return more;
  return std::nullopt;
}

}  // namespace assay::estimate
