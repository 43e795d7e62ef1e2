// Intervals of ratios and of pooled figures, and the fit behind all models.
#include "reports/scaling/fit.h"
#include "reports/scaling/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace assay::report::scaling {
namespace {

Estimate with_arms(double value, double lower, double upper) {
  return {value, Interval{value * std::exp(-lower), value * std::exp(upper)}};
}

// MOVER on logarithms: lower arm hypot(0.1, 0.4) = 0.412311, upper arm hypot(0.2, 0.3) = 0.360555.
TEST(ScalingEstimate, RatioKeepsUnequalArms) {
  const Estimate r = ratio(with_arms(6, 0.1, 0.2), with_arms(2, 0.3, 0.4));
  EXPECT_DOUBLE_EQ(r.value, 3);
  EXPECT_NEAR(r.interval->low, 3 * std::exp(-0.412311), 1e-5);
  EXPECT_NEAR(r.interval->high, 3 * std::exp(0.360555), 1e-5);
  EXPECT_FALSE(ratio(with_arms(6, 0.1, 0.2), {2, {}}).interval);
}

// Logarithms are 0.0953102 to either side of ln 1.1: the standard error of their mean is 0.0953102 and t(1) is 12.7062,
// so the half width is 1.21103.
TEST(ScalingEstimate, TwoRunsThatDifferShowScatter) {
  const std::vector<Estimate> runs{{1.0, {}}, {1.21, {}}};
  const Estimate all = pooled(runs);
  EXPECT_NEAR(all.value, 1.1, 1e-12);
  EXPECT_NEAR(all.interval->low, 1.1 * std::exp(-1.21103), 1e-4);
  EXPECT_NEAR(all.interval->high, 1.1 * std::exp(1.21103), 1e-4);
}

// No scatter: sqrt(2 x ln(1.1)^2) / 2 = 0.0673945 remains from the runs' own intervals.
TEST(ScalingEstimate, RunsThatAgreeAreNoMoreCertainThanTheirIntervals) {
  const Estimate run{2, Interval{2 / 1.1, 2 * 1.1}};
  const std::vector<Estimate> runs{run, run};
  const Estimate all = pooled(runs);
  EXPECT_NEAR(all.interval->high, 2 * std::exp(0.0673945), 1e-6);
  EXPECT_EQ(pooled(std::vector<Estimate>{run}).interval->high, run.interval->high);
}

TEST(ScalingEstimate, RejectsFiguresThatAreNotPositive) {
  EXPECT_FALSE(positive(std::nullopt, std::nullopt));
  EXPECT_FALSE(positive(0.0, std::nullopt));
  EXPECT_FALSE(positive(-1.0, Interval{-2, 1}));
  EXPECT_FALSE(positive(std::numeric_limits<double>::infinity(), std::nullopt));
  EXPECT_FALSE(positive(1.0, Interval{-1, 2})->interval);
  EXPECT_FALSE(positive(1.0, Interval{std::nan(""), 2})->interval);
  EXPECT_EQ(positive(1.0, Interval{1.5, 2})->interval->low, 1.0);
}

// y = 2 + 3 x without noise, and the same with one coefficient 0.
TEST(ScalingFit, RecoversCoefficients) {
  std::vector<Observation> line, flat;
  for (const double x : {0.001, 1.0, 10.0, 1e6}) {
    line.push_back({{1, x}, 2 + 3 * x, 0.01});
    flat.push_back({{1, x}, 2, {}});
  }
  const auto fit = fit_terms(line, 2);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->coefficients[0], 2, 1e-8);
  EXPECT_NEAR(fit->coefficients[1], 3, 1e-8);
  EXPECT_LT(fit->rms, 1e-8);
  EXPECT_EQ(fit->freedom, 2);
  EXPECT_GT(*fit->half_width({1, 0}), 0);
  const auto constant = fit_terms(flat, 2);
  EXPECT_NEAR(constant->coefficients[0], 2, 1e-9);
  EXPECT_EQ(constant->coefficients[1], 0);
}

// One term, x = 1: the fit is the geometric mean, sqrt(2 x 8) = 4, residuals -ln 2 and ln 2, rms ln 2 = 0.693147. With
// one degree of freedom the standard error of ln c is sqrt(2 x 0.480453 / 1 / 2) = 0.693147; t(1) = 12.7062; half width
// of c is 4 x 12.7062 x 0.693147 = 35.2293.
TEST(ScalingFit, IntervalOfAMeanByHand) {
  const std::vector<Observation> two{{{1}, 2, {}}, {{1}, 8, {}}};
  const auto fit = fit_terms(two, 1);
  EXPECT_NEAR(fit->coefficients[0], 4, 1e-9);
  EXPECT_NEAR(fit->rms, 0.693147, 1e-6);
  EXPECT_NEAR(*fit->half_width({1}), 35.2293, 1e-3);
  // The observations' own errors of 0.1 give the narrower 1.95996 x 0.1 / sqrt(2) of 4, so they change nothing.
  const std::vector<Observation> known{{{1}, 2, 0.1}, {{1}, 8, 0.1}};
  EXPECT_NEAR(*fit_terms(known, 1)->half_width({1}), 35.2293, 1e-3);
  // Without residuals only they count: 1.95996 x 0.0707107 x 4 = 0.554361.
  const std::vector<Observation> equal{{{1}, 4, 0.1}, {{1}, 4, 0.1}};
  EXPECT_NEAR(*fit_terms(equal, 1)->half_width({1}), 0.554361, 1e-5);
}

TEST(ScalingFit, IndistinguishableTermsHaveNoFit) {
  const std::vector<Observation> parallel{{{1, 2}, 3, {}}, {{2, 4}, 6, {}}, {{3, 6}, 9, {}}};
  EXPECT_FALSE(fit_terms(parallel, 2));
  EXPECT_FALSE(fit_terms(std::vector<Observation>{{{1, 2}, 3, {}}}, 2));
  EXPECT_FALSE(fit_terms(std::vector<Observation>{}, 1));
}

}  // namespace
}  // namespace assay::report::scaling
