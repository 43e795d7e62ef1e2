#include "workloads/training/target.h"

#include "harness/core/error.h"
#include "harness/core/units.h"

#include <cmath>

namespace assay::training {

Goal::Goal(const Settings& settings, std::shared_ptr<const data::TrainingSet> set) {
  ASSAY_CHECK(settings.recipe.quality, "a quality run without a target");
  const Target& target = settings.recipe.quality->target;
  is_loss_ = settings.seq > 0;
  const char* what = is_loss_ ? "loss" : "accuracy";
  language_ = std::dynamic_pointer_cast<const data::LanguageSet>(set);
  if (target.value) {
    target_ = *target.value;
    text_ = fmt::format("{} {:.5g}", what, target_);
  }
  if (language_ && language_->floor()) {
    bound_ = language_->floor()->bayes;
    if (!target.value) {
      target_ = *bound_ * (1 + target.loss_above_floor);
      text_ = fmt::format("loss {:.5g}: the exact Bayes predictor's {:.5g} and {}", target_, *bound_,
                          format_percent(target.loss_above_floor));
    }
  }
  if (const auto images = std::dynamic_pointer_cast<const data::ClassImages>(set)) {
    bound_ = images->ceiling().accuracy;
    if (!target.value) {
      target_ = *bound_ * target.accuracy_of_ceiling;
      text_ = fmt::format("accuracy {:.5g}: {} of the {:.5g} that label noise leaves", target_,
                          format_percent(target.accuracy_of_ceiling), *bound_);
    }
  }
  if (text_.empty())
    throw UsageError(
        fmt::format("mode=quality: the {} that {} can reach is unknown, so a relative target is not possible; give "
                    "\"target\": {{\"value\": ...}}",
                    what, set->name()));
}

std::string Goal::text() const { return text_; }

std::optional<double> Goal::errors_beyond_bound(const Evaluation& evaluation) const {
  if (!bound_ || evaluation.batches.empty()) return std::nullopt;
  if (!is_loss_) {
    const double deviation = std::sqrt(*bound_ * (1 - *bound_) / static_cast<double>(evaluation.samples));
    return deviation > 0 ? (evaluation.accuracy - *bound_) / deviation : 0;
  }
  // Compares batches with the floor of the same sequences.
  const data::LanguageFloor& floor = *language_->floor();
  std::vector<double> losses, bounds;
  for (const Evaluation::Batch& batch : evaluation.batches) {
    const auto first = static_cast<std::size_t>(batch.first),
               last = first + static_cast<std::size_t>(batch.samples) - 1;
    const std::int64_t begin = first == 0 ? 0 : floor.ends.at(first - 1), end = floor.ends.at(last);
    if (end <= begin) continue;
    losses.push_back(batch.loss);
    bounds.push_back(std::accumulate(floor.losses.begin() + begin, floor.losses.begin() + end, 0.0) /
                     static_cast<double>(end - begin));
  }
  if (losses.size() < 4) return std::nullopt;
  const data::FloorTest test = data::test_floor(losses, bounds);
  return test.standard_error > 0 ? -test.difference / test.standard_error : 0;
}

}  // namespace assay::training
