// The noise between nights: how large, and how alike neighbouring nights are.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace assay::history {

inline constexpr std::size_t max_reference = 180;  // nights that a step is compared with
// Nights away from a level that may be a state of the machine's; longer, it was a change that was put right.
inline constexpr std::size_t max_run = 14;
// No machine repeats better: steps are never judged against less noise than this (a logarithm of a ratio).
inline constexpr double min_sigma = 0.0005;

// The normal score of a value among n others (van der Waerden, "Order tests for the two-sample problem and their
// power", 1952): the standard normal quantile of (below + equal / 2 + 1/2) / (n + 1), with twice_below = 2 below +
// equal and n <= 240.
double normal_score(std::size_t twice_below, std::size_t n);

// The autocorrelation of nights, as an upper estimate: at lag k the larger of fast^k and slow 0.9^k.
struct Correlation {
  double neighbours = 0;  // estimated at lag 1, without the allowance for its error
  double fast = 0;
  double slow = 0;
};

// `residuals` are values less the median of their regime, in order of time; `regime_starts` are the positions in it
// where regimes start. From their normal scores, so that outliers count as extremes only.
Correlation correlation_of(std::span<const double> residuals, std::span<const std::size_t> regime_starts);

// The place of the best-fitting step in `residuals`, if there is one of two standard deviations or more, with at least
// `least` values on either side; else 0. A step that is not found yet must not count as noise.
std::size_t step_within(std::span<const double> residuals, std::size_t least);

// correlation_of() values in blocks of that many, each less its own median.
Correlation correlation_within(std::span<const double> values, std::size_t block);

// V_m: the variance of the mean of m nights over that of independent nights.
class VarianceFactors {
 public:
  VarianceFactors() { factors_.fill(1); }
  explicit VarianceFactors(const Correlation& correlation);
  double operator()(std::size_t nights) const { return factors_[nights]; }

  // The variance of the difference of the means of `recent` and `before` nights, in units of the variance of a night.
  double of_difference(std::size_t recent, std::size_t before) const {
    return factors_[recent] / static_cast<double>(recent) + factors_[before] / static_cast<double>(before);
  }
  // The same over that of independent nights.
  double inflation(std::size_t recent, std::size_t before) const {
    return of_difference(recent, before) / (1.0 / static_cast<double>(recent) + 1.0 / static_cast<double>(before));
  }

 private:
  std::array<double, max_reference + 1> factors_;
};

// Residuals without a step, to rank others among.
class Reference {
 public:
  // `before` are the nights before a step; `older`, residuals of older regimes, is used as far as room is left.
  Reference(std::span<const double> before, std::span<const double> older);

  double centre() const { return centre_; }            // median of `before`
  double sigma() const { return sigma_; }              // robust standard deviation, at least min_sigma
  double largest() const;                              // the largest distance of a residual from 0
  std::size_t size() const { return sorted_.size(); }  // at most max_reference
  // The normal score of a value. Beyond the extremes the tail is taken to fall with the distance from the median to the
  // power of -1.5, which is heavier than that of most noise.
  double score(double value) const;

 private:
  std::vector<double> sorted_;  // residuals
  double centre_ = 0;
  double sigma_ = 0;
};

// How many of `recent` are further than half of `shift`, to its side, from the median of `before`.
std::size_t nights_beyond(std::span<const double> recent, std::span<const double> before, double shift);
// The largest number of consecutive such values of `before`, or residuals of `older`, if it is at least two. Longer
// excursions than max_run count as changes that were reverted.
std::size_t longest_run(std::span<const double> before, std::span<const double> older, double shift);

// Whether a level is that one, `shift` away from another, but for 35 % of the way.
bool is_near(double one, double level, double shift);

// How often values stayed near another level and came back.
struct Visits {
  std::size_t count = 0;
  std::size_t longest = 0;  // nights
};
// Stays among `values` of `least` nights or more around `level`, with single nights elsewhere. `shift` is how far the
// level is from where the values mostly are.
Visits visits_in(std::span<const double> values, double level, double shift, std::size_t least);

// The standard deviation of normal noise with these distances from its median, which may be reordered, by their median;
// or 0.7 times that by their 80 % quantile, as the median of rounded figures may be 0. At least min_sigma.
double sigma_of_distances(std::span<double> distances);

// Median of values that may be reordered; 0 without any.
double median_in_place(std::span<double> values);
double median_of(std::span<const double> values);

}  // namespace assay::history
