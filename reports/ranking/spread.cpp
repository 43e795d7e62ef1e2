#include "reports/ranking/spread.h"

#include "harness/statistics/distributions.h"
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <cmath>

namespace assay::report::ranking {

namespace {

constexpr double error = 0.05;

constexpr double min_sigma = 0.001;  // no two machines are more alike; keeps equal figures from proving anything
constexpr std::size_t max_machines = 1000;

double student(double freedom, double probability) { return student_upper_quantile(freedom, probability / 2); }

}  // namespace

double Side::mean() const { return assay::mean(logs); }

Spread spread_of(std::span<const Side> sides) {
  double squares = 0, freedom = 0;
  for (const Side& side : sides) {
    squares += squared_deviations(side.logs);
    freedom += static_cast<double>(side.logs.size() - 1);
  }
  if (freedom == 0) return {};
  return {std::max(min_sigma, std::sqrt(squares / freedom)), freedom};
}

double decisive_difference(const Side& a, const Side& b, const Spread& spread, std::size_t sides) {
  const double noise = std::hypot(a.within, b.within);
  if (spread.freedom == 0) return std::hypot(std::log1p(undecided_difference), normal_95 * noise);
  const double pairs = static_cast<double>(sides * (sides - 1)) / 2;
  const double between =
      spread.sigma * std::sqrt(1 / static_cast<double>(a.logs.size()) + 1 / static_cast<double>(b.logs.size()));
  return student(spread.freedom, error / pairs) * std::max(between, noise);
}

std::optional<double> half_interval(const Side& side, const Spread& spread) {
  if (spread.freedom > 0)
    return student(spread.freedom, error) *
           std::max(spread.sigma / std::sqrt(static_cast<double>(side.logs.size())), side.within);
  return side.within > 0 ? std::optional(normal_95 * side.within) : std::nullopt;
}

std::size_t machines_to_decide(double log) {
  const double sigma = std::log1p(undecided_difference) / (normal_95 * std::sqrt(2.0));
  std::size_t n = 2;
  while (n < max_machines &&
         student(2.0 * static_cast<double>(n - 1), error) * sigma * std::sqrt(2 / static_cast<double>(n)) > log)
    ++n;
  return n;
}

}  // namespace assay::report::ranking
