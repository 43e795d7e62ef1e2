// Normal scores, autocorrelation and reference samples.
#include "harness/history/detect/noise.h"

#include "harness/statistics/distributions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace assay::history {

namespace {

constexpr std::size_t max_scored = 240;
constexpr std::size_t max_lag = 8;
constexpr double slow_decay = 0.9;
constexpr double max_correlation = 0.95;
constexpr double clear_step = 2;       // standard deviations of the nights around it
constexpr double clip_deviations = 3;  // outliers make no step

// Row n holds 2 n + 1 scores and starts at n * n.
std::vector<double> all_scores() {
  std::vector<double> scores((max_scored + 1) * (max_scored + 1));
  for (std::size_t n = 0; n <= max_scored; ++n) {
    for (std::size_t twice = 0; twice <= 2 * n; ++twice)
      scores[n * n + twice] =
          normal_quantile((static_cast<double>(twice) + 1.0) / (2.0 * static_cast<double>(n) + 2.0));
  }
  return scores;
}

// The normal score of each residual among all.
std::vector<double> scores_of(std::span<const double> residuals) {
  const std::size_t n = residuals.size();
  std::vector<std::pair<double, std::uint32_t>> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = {residuals[i], static_cast<std::uint32_t>(i)};
  std::ranges::sort(order);
  std::vector<double> scores(n);
  for (std::size_t first = 0; first < n;) {
    std::size_t last = first + 1;
    while (last < n && order[last].first == order[first].first) ++last;
    const double score = normal_score(first + last - 1, n - 1);
    for (std::size_t i = first; i < last; ++i) scores[order[i].second] = score;
    first = last;
  }
  return scores;
}

bool is_beyond_half(double residual, double shift) {
  return shift > 0 ? residual > 0.5 * shift : residual < 0.5 * shift;
}

}  // namespace

bool is_near(double one, double level, double shift) { return std::abs(one - level) <= 0.5 * std::abs(shift); }

double normal_score(std::size_t twice_below, std::size_t n) {
  static const std::vector<double> scores = all_scores();
  return scores[n * n + twice_below];
}

Correlation correlation_of(std::span<const double> residuals, std::span<const std::size_t> regime_starts) {
  const std::size_t n = residuals.size();
  if (n < 4) return {.neighbours = 0, .fast = 0.5, .slow = 0};
  const std::vector<double> scores = scores_of(residuals);
  const double variance =
      std::inner_product(scores.begin(), scores.end(), scores.begin(), 0.0) / static_cast<double>(n);
  if (variance <= 0) return {};
  double products[max_lag + 1] = {};
  std::size_t pairs[max_lag + 1] = {};
  for (std::size_t k = 0; k < regime_starts.size(); ++k) {
    const std::size_t first = regime_starts[k], last = k + 1 < regime_starts.size() ? regime_starts[k + 1] : n;
    for (std::size_t lag = 1; lag <= max_lag && first + lag < last; ++lag) {
      double sum = 0;
      for (std::size_t i = first + lag; i < last; ++i) sum += scores[i] * scores[i - lag];
      products[lag] += sum;
      pairs[lag] += last - first - lag;
    }
  }
  const auto at_lag = [&](std::size_t lag) {
    return pairs[lag] ? products[lag] / static_cast<double>(pairs[lag]) / variance : 0.0;
  };
  // Kendall's correction of the bias in short series (Biometrika 1954), once per regime as each has its own median, and
  // half a standard error of each estimate, because too small an estimate costs false alarms and too large a one only
  // nights.
  const double regimes = static_cast<double>(regime_starts.size()), count = static_cast<double>(n);
  const auto corrected = [&](double r) { return r + (1 + 4 * r) * regimes / count; };
  const double allowance = 0.5 / std::sqrt(count);
  double fit = 0, norm = 0;
  for (std::size_t lag = 2; lag <= max_lag; ++lag) {
    const double decay = std::pow(slow_decay, static_cast<double>(lag));
    fit += decay * at_lag(lag);
    norm += decay * decay;
  }
  const double neighbours = corrected(at_lag(1));
  return {.neighbours = std::clamp(neighbours, -max_correlation, max_correlation),
          .fast = std::clamp(neighbours + allowance, 0.0, max_correlation),
          .slow = std::clamp(corrected(fit / norm) + allowance / std::sqrt(norm), 0.0, max_correlation)};
}

std::size_t step_within(std::span<const double> residuals, std::size_t least) {
  const std::size_t n = residuals.size();
  if (n < 2 * least) return 0;
  std::vector<double> scratch(n);
  const auto deviation = [&](std::span<const double> values) {
    std::ranges::transform(values, scratch.begin(), [](double x) { return std::abs(x); });
    return sigma_of_distances(std::span(scratch).first(values.size()));
  };
  const double most = clip_deviations * deviation(residuals);
  std::vector<double> sums = {0};
  for (const double x : residuals) sums.push_back(sums.back() + std::clamp(x, -most, most));
  double best = 0;
  std::size_t place = 0;
  for (std::size_t k = least; k + least <= n; ++k) {
    const double left = static_cast<double>(k), right = static_cast<double>(n - k);
    const double difference = (sums[n] - sums[k]) / right - sums[k] / left;
    const double explained = difference * difference * left * right;
    if (explained > best) best = explained, place = k;
  }
  if (place == 0) return 0;
  const double before = median_of(residuals.first(place)), after = median_of(residuals.subspan(place));
  std::vector<double> rest(residuals.begin(), residuals.end());
  for (std::size_t i = 0; i < n; ++i) rest[i] -= i < place ? before : after;
  return std::abs(after - before) >= clear_step * deviation(rest) ? place : 0;
}

Correlation correlation_within(std::span<const double> values, std::size_t block) {
  std::vector<double> residuals(values.begin(), values.end());
  std::vector<std::size_t> starts;
  for (std::size_t first = 0; first < values.size(); first += block) {
    const std::size_t last = std::min(first + block, values.size());
    const double centre = median_of(values.subspan(first, last - first));
    starts.push_back(first);
    for (std::size_t i = first; i < last; ++i) residuals[i] -= centre;
  }
  return correlation_of(residuals, starts);
}

VarianceFactors::VarianceFactors(const Correlation& correlation) {
  factors_.fill(1);
  // sum_{k<m} (1 - k/m) g_k = S - T / m, with the sums S of g_k and T of k g_k.
  double sum = 0, weighted = 0, fast = 1, slow = correlation.slow;
  for (std::size_t m = 2; m <= max_reference; ++m) {
    fast *= correlation.fast;
    slow *= slow_decay;
    const double g = std::max(fast, slow);
    sum += g;
    weighted += static_cast<double>(m - 1) * g;
    factors_[m] = 1 + 2 * (sum - weighted / static_cast<double>(m));
  }
}

Reference::Reference(std::span<const double> before, std::span<const double> older) {
  before = before.last(std::min(before.size(), max_reference));
  sorted_.assign(before.begin(), before.end());
  std::ranges::sort(sorted_);
  const std::size_t n = sorted_.size();
  if (n > 0) centre_ = 0.5 * (sorted_[(n - 1) / 2] + sorted_[n / 2]);
  for (double& value : sorted_) value -= centre_;
  const std::size_t room = std::min(older.size(), max_reference - n);
  if (room > 0) {
    sorted_.insert(sorted_.end(), older.begin(), older.begin() + static_cast<std::ptrdiff_t>(room));
    std::ranges::sort(sorted_);
  }
  std::vector<double> distances(sorted_.size());
  std::ranges::transform(sorted_, distances.begin(), [](double x) { return std::abs(x); });
  sigma_ = sigma_of_distances(distances);
}

double Reference::largest() const {
  return sorted_.empty() ? 0.0 : std::max(std::abs(sorted_.front()), std::abs(sorted_.back()));
}

double Reference::score(double value) const {
  const double x = value - centre_;
  const std::size_t n = sorted_.size();
  if (n == 0) return 0;
  const bool above = x > sorted_.back();
  if (above || x < sorted_.front()) {
    const double extreme = std::max(min_sigma, above ? sorted_.back() : -sorted_.front());
    const double ratio = std::clamp(std::abs(x) / extreme, 1.0, 100.0);
    const double tail = 0.5 / (static_cast<double>(n + 1) * ratio * std::sqrt(ratio));
    return above ? -normal_quantile(tail) : normal_quantile(tail);
  }
  const auto [low, high] = std::equal_range(sorted_.begin(), sorted_.end(), x);
  return normal_score(static_cast<std::size_t>((low - sorted_.begin()) + (high - sorted_.begin())), n);
}

std::size_t nights_beyond(std::span<const double> recent, std::span<const double> before, double shift) {
  const double centre = median_of(before);
  return static_cast<std::size_t>(
      std::ranges::count_if(recent, [&](double x) { return is_beyond_half(x - centre, shift); }));
}

std::size_t longest_run(std::span<const double> before, std::span<const double> older, double shift) {
  const double centre = median_of(before);
  std::size_t run = 0, longest = 0;
  const auto end = [&] {
    if (run >= 2 && run <= max_run) longest = std::max(longest, run);
    run = 0;
  };
  const auto count = [&](double residual) { is_beyond_half(residual, shift) ? void(++run) : end(); };
  for (const double x : before) count(x - centre);
  end();
  for (const double residual : older) count(residual);
  end();
  return longest;
}

Visits visits_in(std::span<const double> values, double level, double shift, std::size_t least) {
  Visits visits;
  std::size_t first = 0, last = 0, there = 0;  // of the stay so far
  double sum = 0;
  const auto end = [&] {
    if (there >= least && is_near(sum / static_cast<double>(there), level, shift)) {
      ++visits.count;
      visits.longest = std::max(visits.longest, last - first + 1);
    }
    there = 0, sum = 0;
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_beyond_half(values[i] - (level - shift), shift)) continue;
    if (there > 0 && i > last + 2) end();
    if (there == 0) first = i;
    last = i, ++there, sum += values[i];
  }
  end();
  return visits;
}

double sigma_of_distances(std::span<double> distances) {
  if (distances.empty()) return min_sigma;
  const double median = median_in_place(distances);
  const auto place = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() * 4 / 5);
  std::nth_element(distances.begin(), place, distances.end());
  return std::max({min_sigma, 1.4826 * median, 0.7 / 1.2816 * *place});
}

double median_of(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  return median_in_place(copy);
}

double median_in_place(std::span<double> values) {
  const std::size_t n = values.size();
  if (n == 0) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (n % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

}  // namespace assay::history
