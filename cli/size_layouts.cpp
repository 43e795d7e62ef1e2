#include "cli/size_layouts.h"

#include "harness/core/error.h"

#include <algorithm>
#include <set>

namespace assay::cli {

namespace {

constexpr const char* default_precision = "precision=bf16";  // what GPUs are rented for
constexpr std::int64_t max_micro_batch = 4096, max_ranks = 1024;

MemoryEstimator make_estimator(const std::string& model, const std::string& hardware,
                               const std::vector<std::string>& sets) {
  MemoryEstimator made(model, "");
  made.set({default_precision});
  made.set(sets);
  if (hardware.empty()) return made;
  const std::string precision = made.estimate().settings.precision;
  MemoryEstimator on_hardware(model, hardware);
  on_hardware.set({"precision=" + precision});
  on_hardware.set(sets);
  return on_hardware;
}

}  // namespace

LayoutSearch::LayoutSearch(std::string model, std::vector<std::string> sets, const std::vector<std::int64_t>& gpus)
    : model_(std::move(model)),
      sets_(std::move(sets)),
      estimator_(make_estimator(model_, "", sets_)),
      settings_(estimator_.estimate().settings) {
  std::set<std::int64_t> ranks(gpus.begin(), gpus.end());
  for (std::int64_t more = 1; more <= max_ranks; more *= 2) ranks.insert(more);
  for (const std::int64_t dp : ranks)
    for (int zero = 0; zero <= (dp > 1 && settings_.precision != "fp8" ? parallel::max_zero : 0); ++zero)
      layouts_.push_back({.dp = dp, .zero = zero});
}

const LayoutSearch::Plans& LayoutSearch::plans(const Hardware& hardware, const Step& step) {
  const nn::DeviceProfile profile{hardware.sheet.kind == "cpu" ? DeviceKind::cpu : DeviceKind::cuda,
                                  hardware.sheet.memory_bytes.value_or(0)};
  const std::pair key(profile.kind, nn::for_device({}, profile).logits_bytes);
  auto made = estimators_.find(key);
  if (made == estimators_.end()) made = estimators_.emplace(key, make_estimator(model_, hardware.word, sets_)).first;
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

Held LayoutSearch::on(const Hardware& hardware, std::int64_t gpus) {
  const std::uint64_t memory = hardware.sheet.memory_bytes.value();
  std::optional<Held> smallest;
  for (const std::string_view word : nn::words(nn::Checkpointing{}))
    for (const bool gathers : {false, true}) {
      std::optional<Held> best;
      for (std::int64_t samples = 1; samples <= max_micro_batch; samples *= 2) {
        const Plans& all = plans(hardware, {std::string(word), samples});
        bool larger = false;
        for (int zero = gathers ? parallel::max_zero : 0; zero <= (gathers ? parallel::max_zero : 2); ++zero) {
          const auto found = all.find({gpus, zero});
          if (found == all.end()) continue;
          const bool fits = found->second.total() <= memory;
          if (!smallest || found->second.total() < smallest->estimate.total()) smallest = {found->second, fits};
          if (!fits || larger) continue;
          best = {found->second, true};
          larger = true;
        }
        if (!larger) break;
      }
      if (best) return *best;
    }
  return smallest.value();
}

std::optional<std::int64_t> LayoutSearch::fewest_above(const Hardware& hardware, std::int64_t gpus) {
  for (std::int64_t more = 1; more <= max_ranks; more *= 2)
    if (more > gpus && on(hardware, more).fits) return more;
  return std::nullopt;
}

}  // namespace assay::cli
