#include "harness/statistics/prediction.h"

#include "harness/core/error.h"
#include "harness/statistics/distributions.h"
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

// Machines and runs have heavier tails than the normal distribution, and few of them do not show how much: a spread
// from n units is trusted like a normal one from fewer, and never beyond the tails of Student's t with these degrees of
// freedom. Chosen by simulation (tools/floors), so that limits hold if all noise is Student's t with 5 degrees.
constexpr double tail_freedom = 4.5;
constexpr double trusted = 0.6;

double variance_of(std::span<const double> values) {
  return squared_deviations(values) / static_cast<double>(values.size() - 1);
}

}  // namespace

double Prediction::margin(double error, std::size_t count) const {
  ASSAY_CHECK(error > 0 && error <= 0.5, "error {} is not within (0, 0.5]", error);
  ASSAY_CHECK(count >= 2, "a prediction from {} values", count);
  const double n = static_cast<double>(count);
  const double t = student_upper_quantile(std::min(trusted * (n - 1), tail_freedom), error);
  return t * std::sqrt(sigma * sigma + unit_sigma * unit_sigma / n);
}

Prediction predict_new_group(std::span<const std::vector<double>> groups) {
  ASSAY_CHECK(groups.size() >= 2, "a prediction from {} groups", groups.size());
  std::vector<double> means, last;
  double within_squares = 0, inverse = 0;  // the mean of 1 / values of a group
  std::size_t values = 0;
  for (const std::vector<double>& group : groups) {
    ASSAY_CHECK(!group.empty(), "a group without values");
    means.push_back(mean(group));
    last.push_back(group.back());
    within_squares += squared_deviations(group);
    inverse += 1.0 / static_cast<double>(group.size() * groups.size());
    values += group.size();
  }
  Prediction found;
  found.units = groups.size();
  const std::size_t repeats = values - groups.size();  // degrees of freedom within groups
  const double within = repeats > 0 ? within_squares / static_cast<double>(repeats) : 0;
  if (repeats > 0) found.within = std::sqrt(within);
  found.between = std::sqrt(std::max(0.0, variance_of(means) - inverse * within));
  const bool enough_repeats = repeats >= groups.size() - 1;
  const std::vector<double>& units = enough_repeats ? means : last;
  found.mean = mean(units);
  found.unit_sigma = std::sqrt(variance_of(units));
  found.sigma = std::sqrt(variance_of(units) + (enough_repeats ? (1 - inverse) * within : 0));
  return found;
}

Prediction predict_same_group(std::span<const double> values) {
  ASSAY_CHECK(values.size() >= 2, "a prediction from {} values", values.size());
  Prediction found;
  found.units = values.size();
  found.mean = mean(values);
  found.sigma = found.unit_sigma = std::sqrt(variance_of(values));
  found.within = found.sigma;
  return found;
}

}  // namespace assay
