#include "harness/statistics/sequential.h"

#include "harness/core/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay {

namespace {

// A bettor assumes that the truth is this many tolerances from the hypothesis; the last one assumes it at the estimate
// from earlier pairs. Their shares of the wealth at "no change" and at the tolerance, mixed in between. All of these
// numbers only affect how soon a verdict comes; chosen by simulation (tests/unit/statistics/sequential_power_test.cpp).
constexpr std::array<double, 4> distances{1.3, 4, 0.8, 0.4};
constexpr std::array<double, 5> shares_at_no_change{0.55, 0.45, 0, 0, 0};
constexpr std::array<double, 5> shares_at_tolerance{0, 0, 0.8, 0.12, 0.08};
// No single pair may cost more than nine tenths of a bettor's wealth: every machine has outliers.
constexpr double max_stake = 0.9;
// This part of the error granted to a hypothesis is for refuting it towards no change. At no change one half is for
// each direction; at the tolerance and beyond, the verdict `same` needs this one.
constexpr double inward_at_tolerance = 0.9;
// The noise that is assumed before the first pair counts as much as this many pairs.
constexpr double prior_sigma = 1.5;  // in tolerances
constexpr double prior_pairs = 1.5;
constexpr double prior_clip = 3;    // in prior_sigma
constexpr double least_clip = 0.5;  // in prior_sigma
// Candidates for the size up to which deviations count, in robust standard deviations.
constexpr std::array<double, 5> clips{0.5, 0.75, 1, 1.5, 2.5};
constexpr double infinity = std::numeric_limits<double>::infinity();

// The median plus the mean of what deviates from it, clipped: nearly as precise as the mean for normal noise.
double robust_centre(std::span<const double> values, double sigma) {
  const double middle = median(values);
  double sum = 0;
  for (const double value : values) sum += std::clamp(value - middle, -1.5 * sigma, 1.5 * sigma);
  return middle + sum / static_cast<double>(values.size());
}

// The distance is 0 at no change, 1 at the tolerance and beyond.
double distance_from_no_change(double theta, double up, double down) {
  return std::min(1.0, theta > 0 ? theta / up : theta / down);
}

}  // namespace

PairedTest::PairedTest(double tolerance, double error)
    : error_(error),
      up_(std::log1p(tolerance)),
      down_(std::log1p(-tolerance)),
      decisive_{{{0, 1, {}}, {0, -1, {}}, {up_, -1, {}}, {down_, 1, {}}}} {
  ASSAY_CHECK(tolerance > 0 && tolerance < 1, "tolerance {} is not within (0, 1)", tolerance);
  ASSAY_CHECK(error > 0 && error < 1, "error {} is not within (0, 1)", error);
  const double sigma = prior_sigma * up_;
  known_ = {prior_clip * sigma, 1 / (sigma * sigma), 0};
}

void PairedTest::add(double log_ratio) {
  ASSAY_CHECK(std::isfinite(log_ratio), "a log ratio of {}", log_ratio);
  steps_.push_back({log_ratio, known_});
  for (Bets& bets : decisive_) settle(bets, steps_.back());
  if (steps_.size() >= next_lesson_) learn();
}

// The size up to which deviations count is the one that makes a small shift clearest, as the deviations of earlier
// pairs show: with weights psi, a shift's squared mean over its variance is E[psi']^2 / E[psi^2] (Huber, "Robust
// Statistics", 1981), and the best stake on it is shift * size * E[psi'] / E[psi^2].
void PairedTest::learn() {
  const std::size_t n = steps_.size();
  next_lesson_ = n + std::max<std::size_t>(1, n / 16);  // seldom in long series: each looks at all pairs
  if (n < 2) return;
  std::vector<double> values;
  for (const Step& step : steps_) values.push_back(step.value);
  const double middle = median(values), sigma = robust_sigma(values), prior = prior_sigma * up_;
  known_.centre = robust_centre(values, sigma);
  const double count = static_cast<double>(n);
  double most = -1;
  for (const double times : clips) {
    const double clip = std::max(times * sigma, least_clip * prior);
    double inside = 0, squares = 0;
    for (const double value : values) {
      const double size = std::abs(value - middle);
      inside += size <= clip ? 1 : 0;
      squares += std::min(size, clip) * std::min(size, clip);
    }
    const double share = (prior_pairs + inside) / (prior_pairs + count);
    const double square = (prior_pairs * prior * prior + squares * count / (count - 1)) / (prior_pairs + count);
    if (const double clarity = share * share / square; clarity > most) {
      most = clarity;
      known_.clip = clip;
      known_.gain = share / square;
    }
  }
}

// The stake tanh(shift * gain * size) is that of the likelihood ratio of normal noise around a shift either way. It
// grows with the size, so it also loses on average if the truth is beyond the hypothesis.
void PairedTest::settle(Bets& bets, const Step& step) const {
  const double deviation = step.value - bets.theta;
  if (deviation == 0) return;
  const double size = step.known.gain * std::min(std::abs(deviation), step.known.clip);
  const double sign = (deviation > 0) == (bets.side > 0) ? 1 : -1;
  for (std::size_t i = 0; i < bettors; ++i) {
    const double shift =
        i < distances.size() ? distances[i] * up_ : std::max(0.0, bets.side * (step.known.centre - bets.theta));
    bets.logs[i] += std::log1p(sign * std::min(max_stake, std::tanh(shift * size)));
  }
}

double PairedTest::evidence(const Bets& bets) const {
  const double far = distance_from_no_change(bets.theta, up_, down_);
  const double largest = *std::ranges::max_element(bets.logs);
  double wealth = 0;
  for (std::size_t i = 0; i < bettors; ++i)
    wealth += std::lerp(shares_at_no_change[i], shares_at_tolerance[i], far) * std::exp(bets.logs[i] - largest);
  const bool inward = bets.theta * bets.side < 0;
  const double part = std::lerp(0.5, inward ? inward_at_tolerance : 1 - inward_at_tolerance, far);
  return largest + std::log(wealth * error_ * part);
}

double PairedTest::evidence(double theta, int side) const {
  Bets bets{theta, side, {}};
  for (const Step& step : steps_) settle(bets, step);
  return evidence(bets);
}

Direction PairedTest::verdict() const {
  const bool within = refuted(2) && refuted(3), above = refuted(0), below = refuted(1);
  if (!within && !above && !below) return Direction::unknown;
  const double centre = estimate();
  if (within && centre > down_ && centre < up_) return Direction::same;
  if (above && centre > up_) return Direction::faster;
  if (below && centre < down_) return Direction::slower;
  return Direction::unknown;
}

double PairedTest::estimate() const {
  if (steps_.empty()) return 0;
  std::vector<double> values;
  for (const Step& step : steps_) values.push_back(step.value);
  return robust_centre(values, robust_sigma(values));
}

// Bisects between the estimate and a value beyond it that bets on this side refute.
double PairedTest::end_of_interval(int side, double beyond) const {
  double inside = estimate();
  if (evidence(inside, side) >= 0) return inside;
  for (int i = 0; i < 50; ++i) {
    const double middle = std::lerp(inside, beyond, 0.5);
    (evidence(middle, side) >= 0 ? beyond : inside) = middle;
  }
  return inside;
}

Interval PairedTest::interval() const {
  if (steps_.empty()) return {-infinity, infinity};
  double reach = up_;
  for (const Step& step : steps_) reach = std::max(reach, 2 * std::abs(step.value));
  const double centre = estimate();
  const auto end = [&](int side, double tolerance, std::size_t at_tolerance, std::size_t at_no_change) {
    // From the nearest value that the verdict says is refuted.
    if (refuted(at_no_change) && side * centre > 0) return end_of_interval(side, 0);
    if (refuted(at_tolerance) && side * centre > side * tolerance) return end_of_interval(side, tolerance);
    return evidence(-side * reach, side) >= 0 ? end_of_interval(side, -side * reach) : -side * infinity;
  };
  return {end(1, down_, 3, 0), end(-1, up_, 2, 1)};
}

}  // namespace assay
