// Statistics of samples: order statistics, intervals that survive autocorrelation.
#pragma once

#include <numeric>
#include <optional>
#include <span>

namespace assay {

struct Interval {
  double low = 0;
  double high = 0;
};

// The interval of a figure times `factor`, which is above 0.
inline std::optional<Interval> scaled(const std::optional<Interval>& interval, double factor) {
  return interval ? std::optional(Interval{interval->low * factor, interval->high * factor}) : std::nullopt;
}

struct Summary {
  double median = 0;
  // 95 % order-statistic interval of the median; of block medians if samples are autocorrelated, and widened for the
  // correlation that a short series may hide (by two thirds for 30 independent samples, a few per cent for 1,000);
  // absent with too few blocks (always under 6).
  std::optional<Interval> ci95;
  int blocks = 0;  // block medians used; equals the number of samples when they are independent
};

// Median of a non-empty series (mean of the middle two).
double median(std::span<const double> values);
// Quantile q in [0, 1] by linear interpolation (type 7 of Hyndman & Fan 1996).
double quantile(std::span<const double> values, double q);
// The standard deviation of a non-empty series, as 1.4826 times its median absolute deviation, which is exact for
// normal noise: outliers do not count.
double robust_sigma(std::span<const double> values);
// Binomial order-statistic interval of the median at `confidence`; absent under 6 values.
std::optional<Interval> median_interval(std::span<const double> values, double confidence = 0.95);
// Confidence at which the interval of sequentially stopped samples covers 95 %: stopping on the data costs about a
// point of coverage (simulated, and checked by the tests of the stop rule).
inline constexpr double sequential_confidence = 0.96;
// Median of a non-empty series with its interval; the block length follows from the autocorrelation.
Summary summarize(std::span<const double> values, double confidence = sequential_confidence);
// Interval of the mean of two or more independent values: mean ± t((1 + confidence) / 2, n - 1) s / sqrt(n) (Student,
// "The probable error of a mean", Biometrika 1908).
Interval student_interval(std::span<const double> values, double confidence = 0.95);
// The same of a mean rate from block values; absent under 6 values.
std::optional<Interval> mean_interval(std::span<const double> values, double confidence = 0.95);

// The arithmetic mean.
inline double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The sum of the squared differences from the mean.
inline double squared_deviations(std::span<const double> values) {
  const double center = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return sum;
}

}  // namespace assay
