// The rule for large steps.
#include "harness/history/detect/large_step.h"

#include "harness/history/detect/noise.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::history {

namespace {

constexpr std::size_t min_before = 15;
constexpr std::size_t max_before = 30;
constexpr double min_deviations = 2.5;

// How often nights are that far away in a row, looked for each night: fitted above the rates that tools/history counts.
// The first part is what neighbouring nights that correlate by .5 give, which falls with the distance; the second,
// stays of a few nights at another level, which do not. Few nights before have a small range by chance.
double rate_of(std::size_t nights, std::size_t before, double ratio) {
  const double more = static_cast<double>(nights) - 4;
  const double fewer = static_cast<double>(max_before) / static_cast<double>(before);
  const double fall = (6.1 + 0.4 * more) * std::pow(fewer, -0.8);
  return 3e-3 * std::pow(fewer, 2.4) * std::pow(0.4, more) * std::exp(-fall * (ratio - 1.2)) +
         3e-5 * std::pow(fewer, 2.7) * std::pow(0.5, more);
}

}  // namespace

double large_step_p(std::span<const double> recent, std::span<const double> before) {
  if (recent.size() < 4 || before.size() < min_before) return 1;
  before = before.last(std::min(before.size(), max_before));
  std::vector<double> sorted(before.begin(), before.end());
  const double centre = median_in_place(sorted);
  const double side = recent.back() > centre ? 1 : -1;
  for (double& x : sorted) x = side * (x - centre);
  std::ranges::nth_element(sorted, sorted.end() - 2);
  const double range = sorted[sorted.size() - 2];  // without the furthest
  for (double& x : sorted) x = std::abs(x);
  const double least = std::max({range, min_deviations * median_in_place(sorted), min_sigma});
  double nearest = side * (recent.front() - centre);
  for (const double x : recent) nearest = std::min(nearest, side * (x - centre));
  return nearest > least ? std::min(1.0, rate_of(recent.size(), before.size(), nearest / least)) : 1;
}

}  // namespace assay::history
