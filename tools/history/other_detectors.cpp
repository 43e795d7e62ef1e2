// The other detectors.
#include "tools/history/other_detectors.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::history {

namespace {

namespace bm = boost::math;

constexpr std::size_t window = 100;
constexpr std::size_t min_side = 5;
constexpr double max_p = 0.001;
constexpr std::size_t same_place = 7;

struct Moments {
  double mean = 0;
  double variance = 0;  // unbiased
};
Moments moments_of(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return {mean, squares / (n - 1)};
}

// Welch's t test, two-sided.
double welch_p(std::span<const double> a, std::span<const double> b) {
  const Moments x = moments_of(a), y = moments_of(b);
  const double n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  const double u = x.variance / n, v = y.variance / m;
  if (u + v <= 0) return x.mean == y.mean ? 1 : 0;
  const double freedom = (u + v) * (u + v) / (u * u / (n - 1) + v * v / (m - 1));
  return 2 * bm::cdf(bm::students_t(freedom), -std::abs(x.mean - y.mean) / std::sqrt(u + v));
}

// The place that divides `values` best: the energy distance of the two sides with exponent 1, times nm / (n + m).
std::size_t best_division(std::span<const double> values) {
  const std::size_t count = values.size();
  // Sums of distances within the left side, within the right side and between them, moved one value at a time.
  double within_left = 0, within_right = 0, between = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) within_right += std::abs(values[i] - values[j]);
  }
  double best = -1;
  std::size_t place = 0;
  for (std::size_t k = 0; k + 1 < count; ++k) {
    double to_left = 0, to_right = 0;
    for (std::size_t j = 0; j < count; ++j) (j < k ? to_left : to_right) += std::abs(values[k] - values[j]);
    within_left += to_left;
    within_right -= to_right;
    between += to_right - to_left;
    const double n = static_cast<double>(k + 1), m = static_cast<double>(count - k - 1);
    if (n < min_side || m < min_side) continue;
    const double energy = 2 * between / (n * m) - 2 * within_left / (n * (n - 1)) - 2 * within_right / (m * (m - 1));
    const double statistic = energy * n * m / (n + m);
    if (statistic > best) {
      best = statistic;
      place = k + 1;
    }
  }
  return place;
}

void divide(std::span<const double> values, std::size_t offset, std::vector<std::size_t>& places) {
  if (values.size() < 2 * min_side) return;
  const std::size_t place = best_division(values);
  if (place == 0 || welch_p(values.first(place), values.subspan(place)) >= max_p) return;
  places.push_back(offset + place);
  divide(values.first(place), offset, places);
  divide(values.subspan(place), offset + place, places);
}

}  // namespace

std::vector<Report> e_divisive(std::span<const double> values) {
  std::vector<Report> reports;
  for (std::size_t night = 2 * min_side; night < values.size(); ++night) {
    const std::size_t first = night + 1 > window ? night + 1 - window : 0;
    std::vector<std::size_t> places;
    divide(values.subspan(first, night + 1 - first), first, places);
    for (const std::size_t at : places) {
      const bool known = std::any_of(reports.begin(), reports.end(), [&](const Report& r) {
        return std::max(r.at, at) - std::min(r.at, at) <= same_place;
      });
      if (!known) reports.push_back({night, at});
    }
  }
  return reports;
}

std::vector<Report> t_of_64(std::span<const double> values) {
  std::vector<Report> reports;
  const double bound = bm::quantile(bm::students_t(63), 0.99);
  for (std::size_t night = 64; night < values.size(); ++night) {
    const Moments before = moments_of(values.subspan(night - 64, 64));
    if (std::abs(values[night] - before.mean) > bound * std::sqrt(before.variance)) reports.push_back({night, night});
  }
  return reports;
}

std::vector<Report> two_sigma(std::span<const double> values) {
  std::vector<Report> reports;
  for (std::size_t night = 30; night < values.size(); ++night) {
    const Moments before = moments_of(values.subspan(night - 30, 30));
    if (std::abs(values[night] - before.mean) > 2 * std::sqrt(before.variance)) reports.push_back({night, night});
  }
  return reports;
}

}  // namespace assay::history
