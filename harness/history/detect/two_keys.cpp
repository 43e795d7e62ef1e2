// The two tests, and the estimates of place and size.
#include "harness/history/detect/two_keys.h"

#include "harness/statistics/distributions.h"

#include <algorithm>
#include <cmath>

namespace assay::history {

namespace {

// Degrees of freedom of the t likelihood (Lange, Little & Taylor, "Robust statistical modeling using the t
// distribution", JASA 1989).
constexpr double freedom = 2;
constexpr double resolution = 1e-9;  // of shifts

double loss(double x, double level, double scale) {
  const double z = (x - level) / scale;
  return 0.5 * (freedom + 1) * std::log1p(z * z / freedom);
}

// Four steps of iterative reweighting from `start`.
double t_location(std::span<const double> values, double start, double scale) {
  double level = start;
  for (int step = 0; step < 4; ++step) {
    double weights = 0, sum = 0;
    for (const double x : values) {
      const double z = (x - level) / scale;
      const double weight = 1 / (freedom + z * z);
      weights += weight;
      sum += weight * x;
    }
    level = sum / weights;
  }
  return level;
}

// The difference of that rank, from 0, among those of all values of `after` and of `before`, both sorted. It is found
// by bisection, as there may be ten thousand.
double ranked_difference(std::span<const double> after, std::span<const double> before, double rank) {
  double low = after.front() - before.back(), high = after.back() - before.front();
  while (high - low > resolution) {
    const double middle = 0.5 * (low + high);
    std::size_t below = 0, count = before.size();  // the last `count` of `before` differ from x by at most `middle`
    for (const double x : after) {
      while (count > 0 && before[before.size() - count] < x - middle) --count;
      below += count;
    }
    (static_cast<double>(below) > rank ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

double Keys::p() const { return std::max(p_likelihood, p_scores * std::sqrt(p_scores)); }

Keys test_step(std::span<const double> recent, std::span<const double> before, const Reference& reference,
               const VarianceFactors& factors, double enough) {
  const double m = static_cast<double>(recent.size()), n = static_cast<double>(before.size());
  Keys keys;
  keys.inflation = factors.inflation(recent.size(), before.size());
  double score = 0;
  for (const double x : recent) score += reference.score(x);
  score /= m;
  const double z = std::abs(score) / std::sqrt(factors.of_difference(recent.size(), before.size()));
  keys.p_scores = std::erfc(z / std::sqrt(2.0));
  if (keys.p_scores * std::sqrt(keys.p_scores) > enough) return keys;

  keys.scale = scale_of_sigma * reference.sigma();
  std::vector<double> scratch(recent.begin(), recent.end());
  const double middle = median_in_place(scratch);
  keys.level_before = t_location(before, reference.centre(), keys.scale);
  keys.level_after = t_location(recent, middle, keys.scale);
  if ((keys.level_after > keys.level_before) != (score > 0)) {
    keys.p_scores = 1;
    return keys;
  }
  double gain = 0;
  for (const double x : recent) gain += loss(x, keys.level_before, keys.scale) - loss(x, keys.level_after, keys.scale);
  const double likelihood_z = std::sqrt(2 * std::max(0.0, gain) / (1 + m / n) / keys.inflation);
  const auto freedom = static_cast<double>(std::max<std::size_t>(reference.size(), 2));
  keys.p_likelihood = 2 * student_upper_tail(freedom, likelihood_z);
  return keys;
}

std::vector<double> profile(std::span<const double> values, std::size_t first, std::size_t last, const Keys& keys) {
  std::vector<double> sums = {0};
  double sum = 0;
  for (std::size_t i = first; i < last; ++i) {
    sum += loss(values[i], keys.level_after, keys.scale) - loss(values[i], keys.level_before, keys.scale);
    sums.push_back(sum);
  }
  const double best = *std::ranges::max_element(sums);
  for (double& x : sums) x = (x - best) / keys.inflation;
  return sums;
}

double explained_by_line(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  double tilt = 0, at = -0.5 * (n - 1);
  for (const double x : values) tilt += at++ * x;
  return n < 2 ? 0 : tilt * tilt * 12 / (n * (n * n - 1));
}

double explained_by_step(std::span<const double> values, std::size_t recent) {
  const double m = static_cast<double>(recent), n = static_cast<double>(values.size()) - m;
  double before = 0, after = 0;
  for (const double x : values.first(values.size() - recent)) before += x;
  for (const double x : values.last(recent)) after += x;
  const double difference = after / m - before / n;
  return difference * difference * m * n / (m + n);
}

Shift hodges_lehmann(std::span<const double> recent, std::span<const double> before, double inflation) {
  std::vector<double> after(recent.begin(), recent.end()), earlier(before.begin(), before.end());
  std::ranges::sort(after);
  std::ranges::sort(earlier);
  const double m = static_cast<double>(recent.size()), n = static_cast<double>(before.size());
  const double half = 1.96 * std::sqrt(inflation * m * n * (m + n + 1) / 12);
  const double low = std::max(0.0, std::floor(0.5 * m * n - half));
  // Rounded figures differ by the same amount often, which the interval must include.
  return {.value = ranked_difference(after, earlier, 0.5 * (m * n - 1)),
          .interval = {ranked_difference(after, earlier, low) - resolution,
                       ranked_difference(after, earlier, m * n - 1 - low) + resolution}};
}

}  // namespace assay::history
