#include "harness/statistics/statistics.h"

#include "harness/core/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace assay {
namespace {

std::vector<double> iota(std::size_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

std::vector<double> shuffled(std::vector<double> values) {
  std::mt19937_64 random(5);
  std::shuffle(values.begin(), values.end(), random);
  return values;
}

TEST(Statistics, MedianAndQuantiles) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
  const std::vector<double> values = shuffled(iota(11));
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 11);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 3.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.99), 10.9);
  EXPECT_THROW(median({}), Error);
  EXPECT_THROW(quantile(values, 1.5), Error);
}

TEST(Statistics, RobustSigmaIgnoresOutliers) {
  EXPECT_NEAR(robust_sigma(std::vector<double>{1, 2, 3, 4, 5, 6, 1000}), 1.4826 * 2, 1e-9);
  EXPECT_EQ(robust_sigma(std::vector<double>{7}), 0);
}

// Ranks from tables of the binomial interval of the median: n = 6: 1 and 6; 10: 2 and 9; 30: 10 and 21; 100: 40 and 61.
TEST(Statistics, MedianIntervalUsesTheTabulatedRanks) {
  EXPECT_FALSE(median_interval(iota(5)));
  const auto expect = [](std::size_t n, double low, double high) {
    const auto interval = median_interval(shuffled(iota(n)));
    ASSERT_TRUE(interval);
    EXPECT_EQ(interval->low, low) << n;
    EXPECT_EQ(interval->high, high) << n;
  };
  expect(6, 1, 6);
  expect(10, 2, 9);
  expect(30, 10, 21);
  expect(100, 40, 61);
  EXPECT_FALSE(median_interval(iota(6), 0.99));  // even the whole range contains it with only 96.9 %
  EXPECT_TRUE(median_interval(iota(8), 0.99));
  EXPECT_THROW(median_interval(iota(8), 1.0), Error);
}

TEST(Statistics, MeanIntervalIsStudentsT) {
  const auto interval = mean_interval(iota(6));  // mean 3.5, deviation 1.8708, t(5) = 2.5706
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 3.5 - 1.96331, 1e-4);
  EXPECT_NEAR(interval->high, 3.5 + 1.96331, 1e-4);
  EXPECT_FALSE(mean_interval(iota(5)));
}

TEST(Statistics, StudentsIntervalOfFewValues) {
  // 1, 2, 3: mean 2, s = 1, t(0.975, 2) = 4.302653: 2 ± 4.302653 / sqrt(3) = 2 ± 2.484138.
  const Interval wide = student_interval(iota(3));
  EXPECT_NEAR(wide.low, 2 - 2.484138, 1e-6);
  EXPECT_NEAR(wide.high, 2 + 2.484138, 1e-6);
  // 9, 10, 11, 10: mean 10, s = sqrt(2 / 3), t(0.975, 3) = 3.182446: half 3.182446 * 0.816497 / 2 = 1.299228.
  const std::vector<double> four = {9, 10, 11, 10};
  EXPECT_NEAR(student_interval(four).low, 10 - 1.299228, 1e-6);
  EXPECT_NEAR(student_interval(four).high, 10 + 1.299228, 1e-6);
  const std::vector<double> equal = {5, 5, 5};
  EXPECT_DOUBLE_EQ(student_interval(equal).low, 5);
  EXPECT_DOUBLE_EQ(student_interval(equal).high, 5);
}

TEST(Statistics, IndependentSamplesAreTheirOwnBlocks) {
  const Summary summary = summarize(shuffled(iota(101)));
  EXPECT_EQ(summary.median, 51);
  EXPECT_EQ(summary.blocks, 101);
  ASSERT_TRUE(summary.ci95);
  EXPECT_LE(summary.ci95->low, 51);
  EXPECT_GE(summary.ci95->high, 51);
}

TEST(Statistics, CorrelatedSamplesGiveFewBlocksAndWideIntervals) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  double x = 0;
  for (int i = 0; i < 3000; ++i) values.push_back(10 + (x = 0.9 * x + normal(random)));
  const Summary summary = summarize(values);
  EXPECT_LT(summary.blocks, 3000 / 19);  // (1 + 0.9) / (1 - 0.9): that many samples are worth one
  ASSERT_TRUE(summary.ci95);
  const auto naive = median_interval(values);
  EXPECT_GT(summary.ci95->high - summary.ci95->low, 2 * (naive->high - naive->low));
}

TEST(Statistics, ADriftHasNoInterval) {
  const Summary summary = summarize(iota(200));
  EXPECT_EQ(summary.median, 100.5);
  EXPECT_FALSE(summary.ci95);
}

TEST(Statistics, ConstantAndShortSeries) {
  const Summary constant = summarize(std::vector<double>(40, 2.0));
  ASSERT_TRUE(constant.ci95);
  EXPECT_EQ(constant.ci95->low, 2.0);
  EXPECT_EQ(constant.ci95->high, 2.0);
  const Summary single = summarize(std::vector<double>{4.0});
  EXPECT_EQ(single.median, 4.0);
  EXPECT_FALSE(single.ci95);
  EXPECT_FALSE(summarize(shuffled(iota(5))).ci95);
}

}  // namespace
}  // namespace assay
