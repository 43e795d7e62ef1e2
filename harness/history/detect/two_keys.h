// Two independent tests of one step, its place and its size.
#pragma once

#include "harness/history/detect/noise.h"
#include "harness/statistics/statistics.h"

#include <cstddef>
#include <span>
#include <vector>

namespace assay::history {

// The scale of the t distribution of key 1 that fits normal noise of standard deviation 1.
inline constexpr double scale_of_sigma = 0.88;

// The two tests that a step must pass.
struct Keys {
  double p_scores = 1;      // key 2: normal scores
  double p_likelihood = 1;  // key 1: Student's t likelihood ratio; 1 if not asked for
  double level_before = 0;  // locations under t noise
  double level_after = 0;
  double scale = min_sigma;  // scale of the t distribution
  double inflation = 1;      // factor on the difference's variance by autocorrelation

  // The larger of the two; key 2 to the power of 1.5, as its tails beyond the extremes are guessed.
  double p() const;
};

// Whether `recent` nights differ from `before` (at most max_reference of them), of which `reference` was made. Key 1 is
// computed only if key 2 leaves p() at most `enough`.
Keys test_step(std::span<const double> recent, std::span<const double> before, const Reference& reference,
               const VarianceFactors& factors, double enough);

// How well each place of the step explains `values`: the log-likelihood under t noise of `keys` if the step is before
// value `first`, `first + 1`, ... `last`, each less the largest, divided by the inflation.
std::vector<double> profile(std::span<const double> values, std::size_t first, std::size_t last, const Keys& keys);

// What a straight line through the values explains of their squares about the mean.
double explained_by_line(std::span<const double> values);
// The same of a step before the last `recent` values.
double explained_by_step(std::span<const double> values, std::size_t recent);

// The shift from `before` to `recent` (Hodges & Lehmann, "Estimates of location based on rank tests", 1963): the median
// of all differences, with the interval that inverts the rank test of variance times `inflation`.
struct Shift {
  double value = 0;
  Interval interval = {};
};
Shift hodges_lehmann(std::span<const double> recent, std::span<const double> before, double inflation);

}  // namespace assay::history
