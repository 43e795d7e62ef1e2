#include "reports/scaling/estimate.h"

#include "harness/statistics/distributions.h"

#include <algorithm>
#include <cmath>

namespace assay::report::scaling {

namespace {

// Distances of the interval's ends from the value, in logarithms.
struct Arms {
  double lower = 0;
  double upper = 0;
};

std::optional<Arms> arms_of(const Estimate& estimate) {
  if (!estimate.interval) return std::nullopt;
  return Arms{std::log(estimate.value / estimate.interval->low), std::log(estimate.interval->high / estimate.value)};
}

// Without an interval if one of its ends overflows or vanishes.
Estimate with_arms(double value, const std::optional<Arms>& arms) {
  if (!arms) return {value, std::nullopt};
  const Interval interval{value * std::exp(-arms->lower), value * std::exp(arms->upper)};
  if (!std::isfinite(interval.high) || !(interval.low > 0)) return {value, std::nullopt};
  return {value, interval};
}

// Beyond this range, which no measurement reaches, ratios and squares overflow.
constexpr double min_usable = 1e-100, max_usable = 1e100;

bool usable(double value) { return value >= min_usable && value <= max_usable; }

}  // namespace

std::optional<Estimate> positive(std::optional<double> value, const std::optional<Interval>& interval) {
  if (!value || !usable(*value)) return std::nullopt;
  Estimate estimate{*value, std::nullopt};
  if (interval && usable(interval->low) && usable(interval->high))
    estimate.interval =
        Interval{std::min({interval->low, interval->high, *value}), std::max({interval->low, interval->high, *value})};
  return estimate;
}

std::optional<double> relative_error(const Estimate& estimate) {
  const auto arms = arms_of(estimate);
  if (!arms) return std::nullopt;
  return 0.5 * (arms->lower + arms->upper) / t95(0);
}

Estimate ratio(const Estimate& a, const Estimate& b) {
  const auto top = arms_of(a), bottom = arms_of(b);
  if (!top || !bottom) return {a.value / b.value, std::nullopt};
  return with_arms(a.value / b.value,
                   Arms{std::hypot(top->lower, bottom->upper), std::hypot(top->upper, bottom->lower)});
}

Estimate scaled(const Estimate& estimate, double factor) {
  return {estimate.value * factor, assay::scaled(estimate.interval, factor)};
}

Estimate pooled(std::span<const Estimate> runs) {
  if (runs.size() == 1) return runs.front();
  const auto count = static_cast<double>(runs.size());
  double mean = 0, scatter = 0, lower = 0, upper = 0;
  for (const Estimate& run : runs) mean += std::log(run.value) / count;
  for (const Estimate& run : runs) {
    scatter += std::pow(std::log(run.value) - mean, 2);
    if (const auto arms = arms_of(run)) {
      lower += arms->lower * arms->lower;
      upper += arms->upper * arms->upper;
    }
  }
  const int freedom = static_cast<int>(runs.size()) - 1;
  const double between = t95(freedom) * std::sqrt(scatter / freedom / count);
  return with_arms(std::exp(mean),
                   Arms{std::max(between, std::sqrt(lower) / count), std::max(between, std::sqrt(upper) / count)});
}

double t95(int freedom) {
  static const double normal = normal_quantile(0.975);
  return freedom > 0 ? student_quantile(freedom, 0.975) : normal;
}

}  // namespace assay::report::scaling
