#include "harness/statistics/outliers.h"

#include "harness/statistics/distributions.h"
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace assay {

namespace {
constexpr double normal_quartile = 0.6745;  // MAD of a normal distribution of standard deviation 1
}

double Robust::score(double x) const {
  const double off = x - median;
  if (mad > 0) return normal_quartile * off / mad;
  return off == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), off);
}

Robust robust(std::span<const double> values) {
  Robust found{median(values), 0};
  std::vector<double> off;
  off.reserve(values.size());
  for (const double value : values) off.push_back(std::abs(value - found.median));
  found.mad = median(off);
  return found;
}

bool is_outlier(double x, const Robust& others) {
  return std::abs(others.score(x)) >= outlier_score &&
         std::abs(x - others.median) >= outlier_share * std::abs(others.median);
}

std::vector<std::size_t> extreme_deviates(std::span<const double> values, std::size_t max_count, double error) {
  std::vector<std::size_t> rest(values.size()), taken;
  std::iota(rest.begin(), rest.end(), std::size_t{0});
  std::size_t apart = 0;  // of those taken: all before the last that deviates too much, as it was masked by them
  while (taken.size() < max_count && rest.size() >= 3) {
    const double n = static_cast<double>(rest.size());
    double mean = 0, squares = 0;
    for (const std::size_t i : rest) mean += values[i] / n;
    for (const std::size_t i : rest) squares += (values[i] - mean) * (values[i] - mean);
    const auto off = [&](std::size_t i) { return std::abs(values[i] - mean); };
    const auto furthest = std::ranges::max_element(rest, [&](std::size_t a, std::size_t b) { return off(a) < off(b); });
    const double t = student_upper_quantile(n - 2, error / (2 * n));
    const double limit = (n - 1) * t / std::sqrt((n - 2 + t * t) * n);
    taken.push_back(*furthest);
    if (off(*furthest) > limit * std::sqrt(squares / (n - 1))) apart = taken.size();
    rest.erase(furthest);
  }
  taken.resize(apart);
  return taken;
}

}  // namespace assay
