#include "reports/scaling/prediction.h"

#include "reports/scaling/series.h"
#include "reports/scaling/step_models.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::report::scaling {

double Prediction::at(double ranks) const {
  const StepModel& chosen = step_models(mode)[candidate];
  const Terms x = chosen.at(ranks);
  double sum = 0;
  for (std::size_t j = 0; j < chosen.terms; ++j) sum += coefficients[j] * x[j];
  return sum;
}

std::optional<Prediction> predict(const Series& series) {
  if (series.points.size() < min_worlds) return std::nullopt;
  const std::span fitted(series.points.data(), series.points.size() - 1);
  const WorldPoint& largest = series.points.back();
  const std::vector<TriedModel> tried = try_models(series.mode, fitted);
  if (tried.empty()) return std::nullopt;
  const TriedModel& best = best_model(tried);

  Prediction result;
  result.mode = series.mode;
  result.model = best.model->name;
  result.candidate = static_cast<std::size_t>(best.model - step_models(series.mode).data());
  result.coefficients = best.fit.coefficients;
  result.rms = best.fit.rms;
  result.held_out = largest.ranks;
  result.held_out_time = largest.time.value;
  const double at_largest = result.at(largest.ranks);
  result.error = at_largest / largest.time.value - 1;
  const double missed = std::abs(largest.time.value - at_largest);  // seconds
  const int edge = fitted.back().ranks;
  // Without errors of figures and fit only the hold-out error remains.
  const auto half_at = [&](double ranks) { return best.fit.log_half_width(best.model->at(ranks)).value_or(0); };
  const double own = half_at(largest.ranks);
  result.held_out_predicted = {at_largest, Interval{at_largest * std::exp(-own), at_largest * std::exp(own)}};

  for (const int factor : {2, 4}) {
    if (largest.ranks > std::numeric_limits<int>::max() / factor) break;
    const int ranks = factor * largest.ranks;
    const double time = result.at(ranks);
    const double growth = static_cast<double>(ranks - edge) / (largest.ranks - edge);
    const double half = std::hypot(half_at(ranks), std::log1p(missed * growth / time));
    double low = -half, high = half;
    for (const TriedModel& other : tried) {
      if (refuted(other, best, fitted.size())) continue;
      const double shift = std::log(other.fit.at(other.model->at(ranks)) / time);
      low = std::min(low, shift);
      high = std::max(high, shift);
    }
    if (!(std::max(-low, high) <= std::log(max_error_factor))) {
      result.undetermined.push_back(ranks);
      continue;
    }
    Predicted next{ranks, {time, Interval{time * std::exp(low), time * std::exp(high)}}, {}};
    next.efficiency =
        efficiency(series.mode, series.points.front().time, series.points.front().ranks, next.time, ranks);
    // If the base has no interval, use the prediction's alone.
    if (!next.efficiency.interval)
      next.efficiency = efficiency(series.mode,
                                   {series.points.front().time.value,
                                    Interval{series.points.front().time.value, series.points.front().time.value}},
                                   series.points.front().ranks, next.time, ranks);
    result.next.push_back(next);
  }
  return result;
}

}  // namespace assay::report::scaling
