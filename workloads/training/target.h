// The target of a quality run on its data.
#pragma once

#include "workloads/data/class_images.h"
#include "workloads/data/language.h"
#include "workloads/training/settings.h"
#include "workloads/training/trainer.h"

#include <memory>
#include <optional>
#include <string>

namespace assay::training {

class Goal {
 public:
  // `set` is the case's data. Throws UsageError if the target is relative to a bound that the data does not have.
  Goal(const Settings& settings, std::shared_ptr<const data::TrainingSet> set);

  double target() const { return target_; }
  bool is_loss() const { return is_loss_; }
  double value_of(const Evaluation& evaluation) const { return is_loss_ ? evaluation.loss : evaluation.accuracy; }
  bool reached(const Evaluation& evaluation) const {
    return is_loss_ ? evaluation.loss <= target_ : evaluation.accuracy >= target_;
  }
  // The bound of generated data: the loss of the exact Bayes predictor, or the accuracy of one that knows every class.
  std::optional<double> bound() const { return bound_; }
  // How many standard errors this rank's part of an evaluation is better than the bound; above 4 means a mistake in
  // model, loss or data. Nullopt without a bound.
  std::optional<double> errors_beyond_bound(const Evaluation& evaluation) const;
  // "loss 1.234 (floor 1.2, the exact Bayes predictor's, and 2.5 %)"
  std::string text() const;

 private:
  bool is_loss_ = true;
  double target_ = 0;
  std::optional<double> bound_;
  std::string text_;
  std::shared_ptr<const data::LanguageSet> language_;
};

}  // namespace assay::training
