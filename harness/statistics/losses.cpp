#include "harness/statistics/losses.h"

#include "harness/statistics/distributions.h"
#include "harness/statistics/outliers.h"
#include "harness/statistics/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace assay {

namespace {

// The spread that equal machines are taken to have before they are measured: 5 % between the GPUs of a node are common.
constexpr double usual_sigma = 0.025, usual_freedom = 4;
// The part of their variance by which cases of one machine are taken to move together.
constexpr double usual_correlation = 0.1, usual_freedom_together = 8;
constexpr double ninety_percent = 1.2816;  // quantile of the normal distribution
constexpr double apart = 6;                // deviations between the centres of two groups
constexpr double reserve = 0.7;            // of the false fails: spreads are estimates (by simulation)

double variance(double sigma) { return sigma * sigma; }

// Pools variances by what each is worth.
Spread pooled(double variance_a, double freedom_a, const Spread& b) {
  const double freedom = freedom_a + b.freedom;
  return {b.center, std::sqrt((variance_a * freedom_a + variance(b.sigma) * b.freedom) / freedom), freedom};
}

// Each spread, drawn towards that of all.
std::vector<Spread> moderated(std::span<const Spread> spreads, double usual) {
  double weight = usual_freedom, sum = usual_freedom * variance(usual);
  for (const Spread& one : spreads) weight += one.freedom, sum += one.freedom * variance(one.sigma);
  const double common = sum / weight;
  double seen = 0, by_chance = 0;  // relative variances of the variances
  for (const Spread& one : spreads) {
    seen += one.freedom / weight * std::pow(variance(one.sigma) / common - 1, 2);
    by_chance += 2 / weight;
  }
  const double real = std::max(0.0, (seen - by_chance) / (1 + by_chance));
  const double drawn = real > 0 ? std::min(1 + 2 / real, weight) : weight;  // degrees of freedom of the common one
  std::vector<Spread> found;
  for (const Spread& one : spreads) {
    found.push_back(pooled(common, drawn, one));
    found.back().freedom = std::min(found.back().freedom, weight);
  }
  return found;
}

void set_limit(LossLimit& to, const Spread& spread, double tail, double margin) {
  // The median, from which losses are counted, is uncertain itself.
  const double sigma = spread.sigma * std::sqrt(1 + std::numbers::pi / 2 / static_cast<double>(to.members));
  to.center = spread.center;
  to.limit = std::max(margin, student_upper_quantile(spread.freedom, tail) * sigma);
  to.found = to.limit + ninety_percent * sigma;
}

// The members of a case in two groups of at least a quarter each, where the gap between them is widest.
struct Halves {
  std::vector<std::size_t> slow;  // empty: too few members
  double apart = 0;               // the difference of the groups' means
  Spread within = {};
};

Halves halves_of(std::span<const double> speeds) {
  Halves halves;
  for (std::size_t i = 0; i < speeds.size(); ++i)
    if (std::isfinite(speeds[i])) halves.slow.push_back(i);
  std::ranges::sort(halves.slow, {}, [&](std::size_t i) { return speeds[i]; });
  const std::size_t n = halves.slow.size(), least = std::max<std::size_t>(2, (n + 3) / 4);
  if (n < 2 * least) return {};
  std::vector<double> sorted;
  for (const std::size_t i : halves.slow) sorted.push_back(speeds[i]);
  std::size_t at = least;
  for (std::size_t k = least; k <= n - least; ++k)
    if (sorted[k] - sorted[k - 1] > sorted[at] - sorted[at - 1]) at = k;
  const std::span<const double> low(sorted.data(), at), high(sorted.data() + at, n - at);
  halves.slow.resize(at);
  halves.apart = mean(high) - mean(low);
  halves.within.freedom = static_cast<double>(n - 2);
  halves.within.sigma = std::sqrt((squared_deviations(low) + squared_deviations(high)) / halves.within.freedom);
  return halves;
}

void find_group(LossLimit& to, const Halves& halves, const Spread& within, double tail, double margin) {
  if (halves.slow.empty()) return;
  const double enough =
      std::max(apart, student_upper_quantile(within.freedom, tail)) * std::max(within.sigma, halves.within.sigma);
  if (halves.apart > std::max(margin, enough)) to.slower_group = halves.slow;
}

std::vector<double> known(std::span<const double> values) {
  std::vector<double> finite;
  for (const double value : values)
    if (std::isfinite(value)) finite.push_back(value);
  return finite;
}

}  // namespace

Spread robust_spread(std::span<const double> values) {
  // The variance of all but the slowest of 3 to 8 normal values; one of so few may be anything.
  constexpr std::array<double, 6> of_the_fastest = {0.587, 0.630, 0.666, 0.691, 0.715, 0.734};
  constexpr double cut = 3, kept_variance = 0.97334;
  const Robust found = robust(values);
  std::vector<double> kept(values.begin(), values.end());
  // Where the cut lies is known no better than the median absolute deviation (by simulation).
  const std::size_t n = values.size();
  double share = kept_variance * (1 - 1 / static_cast<double>(n)), worth = 0.8;
  if (n < of_the_fastest.size() + 3) {
    kept.erase(std::ranges::min_element(kept));
    share = of_the_fastest[std::max<std::size_t>(n, 3) - 3], worth = 0.9;
  } else {
    std::erase_if(kept, [&](double value) { return std::abs(value - found.median) > cut * 1.4826 * found.mad; });
  }
  const double freedom = static_cast<double>(kept.size() - 1);
  return {found.median, std::sqrt(squared_deviations(kept) / freedom / share), worth * freedom};
}

FleetLosses fleet_losses(std::span<const FleetCase> cases, double false_fails) {
  FleetLosses losses;
  std::vector<Spread> spreads, within;
  std::vector<Halves> halves;
  std::vector<std::size_t> of;  // cases of these spreads
  const std::size_t members = cases.empty() ? 0 : cases.front().speeds.size();
  std::vector<std::size_t> in(members, 0);  // cases of each member that count together
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<double> speeds = known(cases[i].speeds);
    losses.cases.emplace_back().members = speeds.size();
    if (speeds.size() < 3) continue;
    losses.comparisons += speeds.size();
    spreads.push_back(robust_spread(speeds));
    of.push_back(i);
    halves.push_back(halves_of(cases[i].speeds));
    within.push_back(halves.back().within);
    for (std::size_t m = 0; m < members; ++m) in[m] += cases[i].together && std::isfinite(cases[i].speeds[m]) ? 1 : 0;
  }
  losses.together.assign(members, std::numeric_limits<double>::quiet_NaN());
  LossLimit& all = losses.of_together;
  all.members = static_cast<std::size_t>(std::ranges::count_if(in, [](std::size_t count) { return count >= 2; }));
  if (all.members >= 3) losses.comparisons += all.members;
  if (losses.comparisons == 0) return losses;
  const double tail = reserve * false_fails / static_cast<double>(losses.comparisons);
  spreads = moderated(spreads, usual_sigma);
  within = moderated(within, 2 * usual_sigma);
  std::vector<double> sums(members, 0), weights(members, 0);
  double margins = 0, all_weights = 0;
  for (std::size_t k = 0; k < of.size(); ++k) {
    const FleetCase& one = cases[of[k]];
    LossLimit& limit = losses.cases[of[k]];
    set_limit(limit, spreads[k], tail, one.margin);
    find_group(limit, halves[k], within[k], tail, one.margin);
    if (!one.together) continue;
    const double tells = 1 / std::max(variance(spreads[k].sigma), 1e-8);
    margins += tells * one.margin, all_weights += tells;
    for (std::size_t m = 0; m < members; ++m)
      if (std::isfinite(one.speeds[m])) sums[m] += tells * (limit.center - one.speeds[m]), weights[m] += tells;
  }
  for (std::size_t m = 0; m < members; ++m)
    if (in[m] >= 2) losses.together[m] = sums[m] / weights[m];
  if (all.members < 3) return losses;
  std::vector<double> speeds = losses.together;
  for (double& speed : speeds) speed = -speed;
  // Noise of single cases cancels, so that half of their margin suffices.
  const double margin = margins / all_weights / 2;
  const double alone = 1 / std::ranges::max(weights);  // the variance if cases were independent
  const double expected = alone * (1 + usual_correlation * static_cast<double>(std::ranges::max(in) - 1));
  const Spread spread = pooled(expected, usual_freedom_together, robust_spread(known(speeds)));
  set_limit(all, spread, tail, margin);
  const Halves of_all = halves_of(speeds);
  find_group(all, of_all, of_all.within, tail, margin);
  return losses;
}

}  // namespace assay
