// The approximation of the power of key 1.
#include "harness/history/detect/detectable.h"

#include "harness/statistics/distributions.h"

#include <algorithm>
#include <cmath>

namespace assay::history {

namespace {

constexpr double found_z = 0.84;  // above the bound, so that 80 % are found
constexpr double flaky_step = 0.05;

}  // namespace

double detectable_step(double sigma, double spread, const Options& options, std::size_t tests) {
  if (sigma <= 0) return 0;
  const double p = options.false_alarms / static_cast<double>(std::max<std::size_t>(tests, 1)) / placed_tests;
  const double z = found_z - normal_quantile(p / 2);
  // Key 1 gains 3 ln(1 + d^2 / 2.31) for each night that is d standard deviations away: fitted to the mean over normal
  // noise, 3 E[ln(1 + (x + d)^2 / 1.55) - ln(1 + x^2 / 1.55)], and checked by tools/history.
  const double gain = std::min(20.0, z * z * (spread / sigma) * (spread / sigma) / 3);
  return sigma * std::sqrt(2.31 * std::expm1(gain));
}

bool is_flaky(bool unsteady, double sigma, double spread, const Options& options, std::size_t tests) {
  return unsteady || detectable_step(sigma, spread, options, tests) > flaky_step;
}

}  // namespace assay::history
