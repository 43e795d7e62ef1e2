// The olympic mean, and convergence compared with reference points.
#include "workloads/training/scoring.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::training {
namespace {

std::vector<QualityRun> runs(const std::vector<double>& seconds, const std::vector<std::size_t>& missed = {}) {
  std::vector<QualityRun> all;
  for (const double each : seconds) all.push_back({all.size(), true, each, 1000});
  for (const std::size_t index : missed) all[index].reached = false;
  return all;
}

TEST(OlympicScore, DropsFastestAndSlowest) {
  const Score score = olympic_score(runs({10, 1, 5, 6, 100}));
  EXPECT_DOUBLE_EQ(score.seconds.value(), 7);
  EXPECT_EQ(score.rule, "olympic mean of 5 runs");
  EXPECT_DOUBLE_EQ(olympic_score(runs({3, 1, 2})).seconds.value(), 2);
}

TEST(OlympicScore, OneMissCountsAsTheSlowest) {
  // The run that missed was the shortest, but is dropped as the slowest; that of 1 s is dropped as the fastest.
  const Score score = olympic_score(runs({10, 1, 5, 6, 0.5}, {4}));
  EXPECT_DOUBLE_EQ(score.seconds.value(), 7);
  EXPECT_EQ(score.missed, 1);
}

TEST(OlympicScore, TwoMissesInvalidate) {
  const Score score = olympic_score(runs({10, 1, 5, 6, 7}, {0, 4}));
  EXPECT_FALSE(score.seconds);
  EXPECT_EQ(score.missed, 2);
  EXPECT_EQ(score.rule, "2 of 5 runs missed the target");
}

TEST(OlympicScore, FewRunsAreAveragedAndMayNotMiss) {
  EXPECT_DOUBLE_EQ(olympic_score(runs({4})).seconds.value(), 4);
  EXPECT_DOUBLE_EQ(olympic_score(runs({4, 6})).seconds.value(), 5);
  EXPECT_FALSE(olympic_score(runs({4, 6}, {1})).seconds);
  EXPECT_FALSE(olympic_score({}).seconds);
}

std::vector<QualityRun> with_samples(const std::vector<std::int64_t>& samples) {
  std::vector<QualityRun> all;
  for (const std::int64_t each : samples) all.push_back({all.size(), true, 1, each});
  return all;
}

const Convergence reference{"m", 32, "here", {1000, 1010, 990, 1020, 980, 1005, 995, 1015, 985, 1000}};

TEST(Convergence, TooFastAndTooSlowAreDetected) {
  EXPECT_EQ(judge_convergence(with_samples({1000, 1010, 990, 1005, 995}), 32, reference).verdict, Verdict::as_expected);
  EXPECT_EQ(judge_convergence(with_samples({800, 810, 790, 805, 795}), 32, reference).verdict, Verdict::too_fast);
  EXPECT_EQ(judge_convergence(with_samples({1200, 1210, 1190, 1205, 1195}), 32, reference).verdict, Verdict::too_slow);
}

TEST(Convergence, IsNotJudgedByFewRunsOrAnotherBatch) {
  EXPECT_EQ(judge_convergence(with_samples({1, 1, 1, 1}), 32, reference).verdict, Verdict::not_judged);
  EXPECT_EQ(judge_convergence(with_samples({1, 1, 1, 1, 1}), 64, reference).verdict, Verdict::not_judged);
  EXPECT_EQ(judge_convergence(with_samples({1, 1, 1, 1, 1}), 32, std::nullopt).verdict, Verdict::not_judged);
}

TEST(Convergence, BoundIsStudentsT) {
  const auto verdict = judge_convergence(with_samples({1000, 1010, 990, 1005, 995}), 32, reference);
  // Squares about the means: 250 of the runs, 1,500 of the reference; t of 13 degrees of freedom at 99 %: 2.6503.
  EXPECT_NEAR(verdict.high - 1000, 2.6503 * std::sqrt((250.0 + 1500.0) / 13.0) * std::sqrt(1.0 / 5 + 1.0 / 10), 0.01);
}

}  // namespace
}  // namespace assay::training
