// Order statistics and intervals; distributions by Boost.Math.
#include "harness/statistics/statistics.h"

#include "harness/core/error.h"
#include "harness/statistics/distributions.h"

#include <boost/math/distributions/binomial.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay {

namespace {

namespace bm = boost::math;

constexpr std::size_t min_blocks = 6;  // 6 values span the median with 96.9 %, 5 with less than 95 %
constexpr double block_times = 2.0;    // block length over the autocorrelation time
constexpr std::size_t min_block = 3;
constexpr std::size_t max_lags = 1000;  // of the autocorrelation time's sum; bounds the work on long series
// Among samples, a missed correlation costs coverage and a false one only samples: suspect early. Among a few blocks,
// a false one costs the interval itself: believe late.
constexpr double suspect = 0.90;
constexpr double believe = 0.99;
// One-sided bound on the correlation of a series that looks independent. Short autocorrelated series that look so
// happened to stay near one value: without this bound their intervals cover 75 %.
constexpr double hidden = 0.995;
constexpr double max_correlation = 0.95;

// Autocovariance sum at a lag, not normalised; `centred` has its mean subtracted.
double lagged_product(std::span<const double> centred, std::size_t lag) {
  return std::inner_product(centred.begin() + static_cast<std::ptrdiff_t>(lag), centred.end(), centred.begin(), 0.0);
}

// Ranks from 0 (ties share their mean) minus the mean rank: an outlier then weighs no more than it does in a median.
std::vector<double> centred_ranks(std::span<const double> values) {
  const std::size_t n = values.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(n);
  const double middle = 0.5 * static_cast<double>(n - 1);
  for (std::size_t first = 0; first < n;) {
    std::size_t last = first;
    while (last + 1 < n && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i) ranks[order[i]] = 0.5 * static_cast<double>(first + last) - middle;
    first = last + 1;
  }
  return ranks;
}

// Lag-1 autocorrelation minus its bias in short series (Kendall, "Note on bias in the estimation of autocorrelation",
// Biometrika 1954).
double lag_one(std::span<const double> centred, double variance) {
  const double r = lagged_product(centred, 1) / variance;
  return r + (1.0 + 3.0 * r) / static_cast<double>(centred.size());
}

// Whether neighbours are more alike than in `confidence` of all series of independent values.
bool correlated(std::span<const double> centred, double confidence) {
  const double variance = lagged_product(centred, 0);
  if (variance <= 0) return false;
  return lag_one(centred, variance) > normal_quantile(confidence) / std::sqrt(static_cast<double>(centred.size()));
}

// How many samples carry the information of one independent sample: the larger of the initial positive sequence sum
// (Geyer, "Practical Markov chain Monte Carlo", 1992) and the first-order autoregressive value (1 + r) / (1 - r).
double autocorrelation_time(std::span<const double> centred) {
  const std::size_t n = centred.size();
  const double variance = lagged_product(centred, 0);
  if (variance <= 0) return 1.0;
  const double r = std::min(lag_one(centred, variance), 0.999);
  const double autoregressive = (1.0 + r) / (1.0 - r);
  double sum = -1.0;
  const std::size_t lags = std::min(n / min_blocks, max_lags);
  for (std::size_t lag = 0; lag + 1 <= lags; lag += 2) {
    const double pair = (lagged_product(centred, lag) + lagged_product(centred, lag + 1)) / variance;
    if (pair <= 0) break;
    sum += 2.0 * pair;
  }
  return std::max({1.0, autoregressive, sum});
}

// The confidence at which independent values would have as wide an interval as these with their correlation at its
// upper bound: the standard error grows by the root of tau = (1 + r) / (1 - r), and the spread of n such values is too
// small by the root of 1 - tau / n. Long series are unaffected.
double widened(std::span<const double> values, double confidence) {
  const std::vector<double> ranks = centred_ranks(values);
  const double variance = lagged_product(ranks, 0);
  if (variance <= 0) return confidence;
  const double n = static_cast<double>(values.size());
  const double r = std::clamp(lag_one(ranks, variance) + normal_quantile(hidden) / std::sqrt(n), 0.0, max_correlation);
  const double tau = (1.0 + r) / (1.0 - r);
  const double spread = std::max(0.1, 1.0 - tau / n);
  const double z = normal_quantile(0.5 * (1.0 + confidence)) * std::sqrt(tau / spread);
  return 1.0 - 2.0 * normal_upper_tail(std::min(z, 8.0));
}

// Medians of `blocks` consecutive runs of nearly equal, odd length (an even run loses its last value): for skewed
// values, the mean of the middle two has a different median than the values.
std::vector<double> block_medians(std::span<const double> values, std::size_t blocks) {
  std::vector<double> medians(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t first = values.size() * i / blocks, last = values.size() * (i + 1) / blocks;
    medians[i] = median(values.subspan(first, (last - first - 1) / 2 * 2 + 1));
  }
  return medians;
}

}  // namespace

double median(std::span<const double> values) { return quantile(values, 0.5); }

double robust_sigma(std::span<const double> values) {
  constexpr double of_normal_noise = 1.4826;  // 1 / 0.6745: half of a normal distribution is within 0.6745 deviations
  const double middle = median(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - middle));
  return of_normal_noise * median(deviations);
}

double quantile(std::span<const double> values, double q) {
  ASSAY_CHECK(!values.empty(), "a quantile of no values");
  ASSAY_CHECK(q >= 0 && q <= 1, "quantile {} is not within [0, 1]", q);
  std::vector<double> sorted(values.begin(), values.end());
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto low = sorted.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(sorted.begin(), low, sorted.end());
  if (below + 1 == sorted.size()) return *low;
  const double next = *std::min_element(low + 1, sorted.end());
  return std::lerp(*low, next, place - static_cast<double>(below));
}

std::optional<Interval> median_interval(std::span<const double> values, double confidence) {
  ASSAY_CHECK(confidence > 0 && confidence < 1, "confidence {} is not within (0, 1)", confidence);
  const std::size_t n = values.size();
  if (n < min_blocks) return std::nullopt;
  // The number of values below the median is binomial(n, 1/2): [x(k + 1), x(n - k)] misses it with probability
  // 2 P(count <= k). Take the largest k for which that is small enough.
  const bm::binomial count(static_cast<double>(n), 0.5);
  const double tail = 0.5 * (1.0 - confidence);
  if (bm::cdf(count, 0.0) > tail) return std::nullopt;
  double k = std::max(0.0, bm::quantile(count, tail));
  while (k > 0 && bm::cdf(count, k) > tail) --k;  // quantiles of discrete distributions are rounded
  std::vector<double> sorted(values.begin(), values.end());
  const auto low = sorted.begin() + static_cast<std::ptrdiff_t>(k);
  const auto high = sorted.end() - 1 - static_cast<std::ptrdiff_t>(k);
  std::nth_element(sorted.begin(), low, sorted.end());
  std::nth_element(low + 1, high, sorted.end());  // k < n / 2: low is left of high
  return Interval{*low, *high};
}

Summary summarize(std::span<const double> values, double confidence) {
  Summary summary;
  summary.median = median(values);
  const std::size_t n = values.size();
  std::size_t blocks = n;
  if (n >= min_blocks) {
    const std::vector<double> ranks = centred_ranks(values);
    if (correlated(ranks, suspect))
      blocks = std::min(n / min_block,
                        static_cast<std::size_t>(static_cast<double>(n) / (block_times * autocorrelation_time(ranks))));
    // A slow drift outlasts such blocks: enlarge them until neighbours are no longer alike.
    while (blocks >= min_blocks && blocks < n && correlated(centred_ranks(block_medians(values, blocks)), believe))
      blocks /= 2;
  }
  summary.blocks = static_cast<int>(std::max<std::size_t>(blocks, 1));
  if (blocks < min_blocks) return summary;
  if (blocks < n) {
    const std::vector<double> medians = block_medians(values, blocks);
    summary.ci95 = median_interval(medians, widened(medians, confidence));
  } else {
    summary.ci95 = median_interval(values, widened(values, confidence));
    // A few samples cannot be distinguished from correlated ones: assume independence, and take their whole range.
    if (!summary.ci95 && median_interval(values, confidence)) {
      const auto [low, high] = std::ranges::minmax_element(values);
      summary.ci95 = Interval{*low, *high};
    }
  }
  if (summary.ci95) {  // the median of all may lie outside a few skewed block medians
    summary.ci95->low = std::min(summary.ci95->low, summary.median);
    summary.ci95->high = std::max(summary.ci95->high, summary.median);
  }
  return summary;
}

Interval student_interval(std::span<const double> values, double confidence) {
  ASSAY_CHECK(confidence > 0 && confidence < 1, "confidence {} is not within (0, 1)", confidence);
  const double center = mean(values);
  const double count = static_cast<double>(values.size());
  const double t = student_quantile(count - 1, 0.5 * (1.0 + confidence));
  const double half = t * std::sqrt(squared_deviations(values) / (count - 1) / count);
  return {center - half, center + half};
}

std::optional<Interval> mean_interval(std::span<const double> values, double confidence) {
  if (values.size() < min_blocks) return std::nullopt;
  return student_interval(values, confidence);
}

}  // namespace assay
