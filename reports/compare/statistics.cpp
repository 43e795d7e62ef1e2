// Tests and intervals for differences of logarithms.
#include "reports/compare/statistics.h"

#include "harness/statistics/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::report::comparison {

namespace {

constexpr double confidence_tail = 0.025;  // of a two-sided 95 %
constexpr double power = 0.80;
constexpr double max_log = 230;  // 1e100: ratios of any figures stay finite

double bounded_exp(double log) { return std::exp(std::clamp(log, -max_log, max_log)); }

// Upper quantile and two-sided probability: of the normal distribution if there are no degrees of freedom.
double upper_quantile(std::optional<double> freedom, double tail) {
  return freedom ? student_upper_quantile(*freedom, tail) : normal_upper_quantile(tail);
}

double two_sided(double statistic, std::optional<double> freedom) {
  const double size = std::abs(statistic);
  return 2 * (freedom ? student_upper_tail(*freedom, size) : normal_upper_tail(size));
}

// The smallest true difference that a two-sided test at 5 % finds with 80 %: (t_0.975 + t_0.80) standard errors
// (Bloom, "Minimum detectable effects", Evaluation Review 1995).
std::optional<double> detectable(double error, std::optional<double> freedom) {
  const double log = (upper_quantile(freedom, confidence_tail) + upper_quantile(freedom, 1 - power)) * error;
  return log < max_log ? std::optional(std::expm1(log)) : std::nullopt;
}

double mean_log(std::span<const Observation> side) {
  double sum = 0;
  for (const Observation& run : side) sum += run.log;
  return sum / static_cast<double>(side.size());
}

// Standard error of one run's figure from its own samples: the wider half of its interval.
double within_error(const Observation& run) {
  if (!run.within) return 0;
  const double half = std::max(run.within->high - run.log, run.log - run.within->low);
  return half / upper_quantile({}, confidence_tail);
}

// Variance of one run's figure: that between the runs of a side, but no less than their own samples show.
double run_variance(std::span<const Observation> side) {
  const double mean = mean_log(side);
  double between = 0, within = 0;
  for (const Observation& run : side) {
    between += (run.log - mean) * (run.log - mean);
    within += within_error(run) * within_error(run);
  }
  const double n = static_cast<double>(side.size());
  const double floor = std::max(within / n, min_run_noise * min_run_noise);
  return side.size() > 1 ? std::max(between / (n - 1), floor) : floor;
}

// Tests the difference head - base by its standard error and degrees of freedom.
void test_between_runs(std::span<const Observation> base, std::span<const Observation> head, double difference,
                       Change& change) {
  const double nb = static_cast<double>(base.size()), nh = static_cast<double>(head.size());
  double vb = run_variance(base), vh = run_variance(head);
  double freedom = 0;
  if (base.size() > 1 && head.size() > 1) {
    vb /= nb, vh /= nh;
    freedom = (vb + vh) * (vb + vh) / (vb * vb / (nb - 1) + vh * vh / (nh - 1));
  } else {
    const double n = std::max(nb, nh), common = std::max(vb, vh);
    vb = common / nb, vh = common / nh;
    freedom = n - 1;
  }
  const double error = std::sqrt(vb + vh);
  const double half = upper_quantile(freedom, confidence_tail) * error;
  change.noise = Noise::between_runs;
  change.freedom = freedom;
  change.p = two_sided(difference / error, freedom);
  change.ci95 = Interval{bounded_exp(difference - half), bounded_exp(difference + half)};
  change.detectable = detectable(error, freedom);
}

// One run per side. The interval of the difference is made from those of its parts by MOVER (Zou & Donner 2008).
void test_within_runs(const Observation& base, const Observation& head, double difference, const RunNoise& noise,
                      Change& change) {
  if (!base.within || !head.within) return;
  change.noise = Noise::within_run;
  const double down = std::hypot(head.log - head.within->low, base.within->high - base.log);
  const double up = std::hypot(head.within->high - head.log, base.log - base.within->low);
  change.ci95 = Interval{bounded_exp(difference - down), bounded_exp(difference + up)};

  const double within = within_error(base, head);
  const double assumed = std::hypot(within, std::sqrt(2.0) * noise.assumed);
  change.p = two_sided(difference / assumed, {});
  change.detectable = detectable(assumed, {});
  if (!noise.scatter) return;
  // A case noisier than the median one scatters more.
  const double more = std::sqrt(std::max(0.0, within * within - noise.within * noise.within));
  const double seen = std::max(std::hypot(*noise.scatter, more), min_run_noise);
  const double p = two_sided(difference / seen, noise.freedom);
  if (p > *change.p) change.p = p, change.freedom = noise.freedom;
  const auto wider = detectable(seen, noise.freedom);
  if (!wider || *wider > *change.detectable) change.detectable = wider;
}

// For metrics where lower is better, the speed is the inverse ratio.
void invert(Change& change) {
  change.ratio = 1 / change.ratio;
  if (change.ci95) change.ci95 = Interval{1 / change.ci95->high, 1 / change.ci95->low};
}

}  // namespace

double within_error(const Observation& base, const Observation& head) {
  return std::hypot(within_error(base), within_error(head));
}

RunNoise run_noise(std::span<const double> log_ratios, std::span<const double> within_errors) {
  RunNoise noise;
  const std::size_t n = log_ratios.size();
  if (n < scatter_cases) return noise;
  std::vector<double> sorted(log_ratios.begin(), log_ratios.end());
  std::ranges::sort(sorted);
  const std::size_t half = n / 2 + 1;
  double length = std::numeric_limits<double>::max();
  for (std::size_t i = 0; i + half <= n; ++i) length = std::min(length, sorted[i + half - 1] - sorted[i]);
  constexpr double normal_half = 1.4826;  // 1 / 0.6745: half of a normal distribution is within 0.6745 deviations
  const double count = static_cast<double>(n);
  noise.assumed = quiet_run_noise;
  noise.scatter = normal_half * (1 + 5 / (count - 1)) * length / 2;
  // From simulations with 8 to 100 unchanged cases: at most 5 % of such comparisons call the largest ratio a change.
  noise.freedom = count / 2 + 2;
  if (!within_errors.empty()) noise.within = median(within_errors);
  return noise;
}

Change change_of(std::span<const Observation> base, std::span<const Observation> head, Better better,
                 const RunNoise& noise) {
  Change change;
  const double difference = mean_log(head) - mean_log(base);
  change.ratio = bounded_exp(difference);
  if (base.size() > 1 || head.size() > 1)
    test_between_runs(base, head, difference, change);
  else
    test_within_runs(base.front(), head.front(), difference, noise, change);
  if (better == Better::lower) invert(change);
  return change;
}

void adjust(std::span<Change* const> changes) {
  std::vector<Change*> tested;
  for (Change* change : changes)
    if (change->p) tested.push_back(change);
  std::ranges::stable_sort(tested, [](const Change* a, const Change* b) { return *a->p < *b->p; });
  double q = 1;
  for (std::size_t i = tested.size(); i > 0; --i) {
    q = std::min(q, *tested[i - 1]->p * static_cast<double>(tested.size()) / static_cast<double>(i));
    tested[i - 1]->q = q;
  }
}

namespace {

Judgement judge_interval(const Change& change, double tolerance) {
  const Interval& ci = *change.ci95;
  const double low = 1 - tolerance, high = 1 + tolerance;
  if (ci.low >= low && ci.high <= high) return {Direction::same, false, "the interval is within the tolerance"};

  const bool significant = change.q && *change.q <= significance;
  const bool within_run = change.noise == Noise::within_run;
  const bool beyond_slow = within_run ? ci.high < low : change.ratio < low;
  const bool beyond_fast = within_run ? ci.low > high : change.ratio > high;
  if (significant && beyond_slow) return {Direction::slower, false, "significant, and by more than the tolerance"};
  if (significant && beyond_fast) return {Direction::faster, false, "significant, and by more than the tolerance"};

  Judgement unknown{Direction::unknown, ci.low < low, ""};
  if (!unknown.may_be_slower)
    unknown.reason = "not slower by more than the tolerance; too noisy to say whether it is faster";
  else if (within_run && (ci.high < low || ci.low > high))
    unknown.reason = "noise between runs may explain it: use three or more runs per side";
  else if (within_run)
    unknown.reason = "the interval extends beyond the tolerance: use three or more runs per side, or longer runs";
  else if (significant)
    unknown.reason = "it changed, but perhaps by less than the tolerance: use more runs per side";
  else
    unknown.reason = "the interval extends beyond the tolerance: use more runs per side";
  return unknown;
}

}  // namespace

Judgement judge(const Change& change, double tolerance) {
  if (change.noise == Noise::none) return {Direction::same, false, "the same run on both sides"};
  if (!change.ci95)
    return {Direction::unknown, true, "one run per side, and its samples give no interval: use several runs per side"};
  return judge_interval(change, tolerance);
}

}  // namespace assay::report::comparison
