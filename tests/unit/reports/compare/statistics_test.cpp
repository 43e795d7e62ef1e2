// Changes, intervals, tests and verdicts, against values computed by hand.
#include "reports/compare/statistics.h"

#include "reports/compare/words.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay::report::comparison {
namespace {

std::vector<Observation> logs(std::initializer_list<double> values) {
  std::vector<Observation> runs;
  for (const double value : values) runs.push_back({value});
  return runs;
}

// A figure with its interval.
Observation figure(double value, double low, double high) {
  return {std::log(value), Interval{std::log(low), std::log(high)}};
}

// Logarithms 0, 0.01, -0.01 against the same minus 0.1: both variances are 1e-4, the standard error of the difference
// is sqrt(2 * 1e-4 / 3) = 0.0081650, t = 12.2474 with 4 degrees of freedom. t_0.975(4) = 2.776445: half width
// 0.0226696. F(t; 4) = 1/2 + 3/8 t / sqrt(1 + t^2/4) (1 - t^2 / (12 (1 + t^2/4))) gives p = 2.5522e-4. t_0.80(4) =
// 0.940965: detectable exp(3.717410 * 0.0081650) - 1 = 0.030818.
TEST(CompareStatistics, SeveralRunsPerSideUseWelchsTest) {
  const Change change = change_of(logs({0, 0.01, -0.01}), logs({-0.1, -0.09, -0.11}), Better::higher, {});
  EXPECT_EQ(change.noise, Noise::between_runs);
  EXPECT_NEAR(change.ratio, 0.904837, 1e-6);
  EXPECT_NEAR(*change.freedom, 4, 1e-9);
  EXPECT_NEAR(*change.p, 2.5522e-4, 1e-8);
  EXPECT_NEAR(change.ci95->low, 0.884556, 1e-6);
  EXPECT_NEAR(change.ci95->high, 0.925584, 1e-6);
  EXPECT_NEAR(*change.detectable, 0.030818, 1e-6);
}

// Variances 1e-4 of 3 runs and 8e-4 of 2: vb = 3.3333e-5, vh = 4e-4;
// (vb + vh)^2 / (vb^2 / 2 + vh^2 / 1) = 1.877778e-7 / 1.605556e-7 = 1.169550.
TEST(CompareStatistics, DegreesOfFreedomAreThoseOfWelchAndSatterthwaite) {
  const Change change = change_of(logs({0, 0.01, -0.01}), logs({-0.02, 0.02}), Better::higher, {});
  EXPECT_NEAR(*change.freedom, 1.169550, 1e-6);
}

// Three runs against one, which is assumed to be as noisy. Variance 1e-4 (1/3 + 1), standard error 0.0115470, 2 degrees
// of freedom: t_0.975(2) = 4.302653, half width 0.0496828; t = 8.660254, p = 1 - t / sqrt(2 + t^2) = 0.0130725.
TEST(CompareStatistics, SeveralRunsAgainstOne) {
  for (const bool reversed : {false, true}) {
    const auto several = logs({0, 0.01, -0.01}), one = logs({-0.1});
    const Change change =
        reversed ? change_of(one, several, Better::lower, {}) : change_of(several, one, Better::higher, {});
    EXPECT_NEAR(*change.freedom, 2, 1e-9);
    EXPECT_NEAR(*change.p, 0.0130725, 1e-7);
    EXPECT_NEAR(change.ci95->low, 0.860981, 1e-6);
    EXPECT_NEAR(change.ci95->high, 0.950928, 1e-6);
  }
}

// 100 [99, 101] to 90 [89.5, 90.5]. By MOVER: down = hypot(ln(90/89.5), ln(101/100)) = hypot(0.0055710, 0.0099503) =
// 0.0114036: low 0.9 e^-0.0114036 = 0.889795; up = hypot(ln(90.5/90), ln(100/99)) = hypot(0.0055402, 0.0100503):
// high 0.910388. Standard errors of the figures: 0.0100503 / 1.959964 and 0.0055710 / 1.959964; with 1.25 % per run of
// noise between runs sqrt(0.0051278^2 + 0.0028424^2 + 2 * 0.0125^2) = 0.0186246, z = 5.657077, p = erfc(z / sqrt 2)
// = 1.5397e-8. Detectable: exp((1.959964 + 0.841621) * 0.0186246) - 1 = 0.053564.
TEST(CompareStatistics, OneRunPerSideUsesItsSamplesInterval) {
  const Change change =
      change_of(std::vector{figure(100, 99, 101)}, std::vector{figure(90, 89.5, 90.5)}, Better::higher, {});
  EXPECT_EQ(change.noise, Noise::within_run);
  EXPECT_NEAR(change.ratio, 0.9, 1e-12);
  EXPECT_NEAR(change.ci95->low, 0.889795, 1e-6);
  EXPECT_NEAR(change.ci95->high, 0.910388, 1e-6);
  EXPECT_NEAR(*change.p, 1.5397e-08, 1e-12);
  EXPECT_NEAR(*change.detectable, 0.053564, 1e-6);
}

// The same as a time of 90 after 100: 1 / 0.9 faster, with the interval inverted.
TEST(CompareStatistics, LowerIsFasterIfLowerIsBetter) {
  const Change change =
      change_of(std::vector{figure(100, 99, 101)}, std::vector{figure(90, 89.5, 90.5)}, Better::lower, {});
  EXPECT_NEAR(change.ratio, 1 / 0.9, 1e-12);
  EXPECT_NEAR(change.ci95->low, 1 / 0.910388, 1e-6);
  EXPECT_NEAR(change.ci95->high, 1 / 0.889795, 1e-6);
}

TEST(CompareStatistics, OneRunWithoutAnIntervalIsInconclusive) {
  const Change change = change_of(logs({0}), logs({-1}), Better::higher, {});
  EXPECT_EQ(change.noise, Noise::unknown);
  EXPECT_FALSE(change.ci95 || change.p || change.detectable);
}

// Identical runs: assume 0.1 % per run, sqrt(2 * 1e-6 / 3) = 8.1650e-4 times 2.776445.
TEST(CompareStatistics, ZeroVarianceIsNotCertainty) {
  const Change change = change_of(logs({0, 0, 0}), logs({0, 0, 0}), Better::higher, {});
  EXPECT_NEAR(*change.p, 1, 1e-12);
  EXPECT_NEAR(change.ci95->high, std::exp(8.1650e-4 * 2.776445), 1e-7);
}

// Runs that agree although their samples are noisy: use within-run errors of 0.0196 / 1.96 = 1 % as the variance.
TEST(CompareStatistics, ARunIsNoMoreCertainThanItsSamples) {
  std::vector<Observation> runs;
  for (int i = 0; i < 3; ++i) runs.push_back({0, Interval{-0.01959964, 0.01959964}});
  const Change change = change_of(runs, runs, Better::higher, {});
  EXPECT_NEAR(change.ci95->high, std::exp(2.776445 * std::sqrt(2e-4 / 3)), 1e-6);
}

TEST(CompareStatistics, FiguresOfAnySizeStayFinite) {
  for (const double log : {-740.0, 700.0}) {
    const Change change = change_of(logs({0, 300}), logs({log, -log}), Better::lower, {});
    EXPECT_TRUE(std::isfinite(change.ratio) && std::isfinite(change.ci95->low) && std::isfinite(change.ci95->high));
    EXPECT_FALSE(change_text(change.ratio, change.ci95).empty());
    EXPECT_EQ(interval_text(change.ci95).find("inf"), std::string::npos);
  }
}

// Sorted p 0.01, 0.02, 0.03, 0.5 of m = 4: p m / rank = 0.04, 0.04, 0.04, 0.5. Changes without p do not count.
TEST(CompareStatistics, FalseDiscoveryRateIsThatOfBenjaminiAndHochberg) {
  std::vector<Change> changes(5);
  const double p[] = {0.5, 0.01, 0.03, 0.02};
  for (std::size_t i = 0; i < 4; ++i) changes[i].p = p[i];
  std::vector<Change*> all;
  for (Change& change : changes) all.push_back(&change);
  adjust(all);
  EXPECT_NEAR(*changes[0].q, 0.5, 1e-12);
  for (const std::size_t i : {1, 2, 3}) EXPECT_NEAR(*changes[i].q, 0.04, 1e-12);
  EXPECT_FALSE(changes[4].q);
}

// Step-up: the q of a smaller p never exceeds that of a larger one. 0.04, 0.045 of m = 2: min(0.08, 0.045) = 0.045.
TEST(CompareStatistics, StepUp) {
  std::vector<Change> changes(2);
  changes[0].p = 0.04;
  changes[1].p = 0.045;
  adjust(std::vector<Change*>{&changes[0], &changes[1]});
  EXPECT_NEAR(*changes[0].q, 0.045, 1e-12);
}

// 0, 0.01, ... 0.07: the shortest 8 / 2 + 1 = 5 of them span 0.04: 1.4826 (1 + 5/7) 0.02 = 0.050832.
TEST(CompareStatistics, ScatterOfCasesShowsTheNoiseBetweenRuns) {
  std::vector<double> ratios;
  for (int i = 0; i < 8; ++i) ratios.push_back(0.01 * i);
  EXPECT_NEAR(*run_noise(ratios, {}).scatter, 0.050832, 1e-9);
  EXPECT_EQ(run_noise(ratios, {}).assumed, quiet_run_noise);
  ratios.pop_back();
  EXPECT_FALSE(run_noise(ratios, {}).scatter);
  EXPECT_EQ(run_noise(ratios, {}).assumed, assumed_run_noise);
}

TEST(CompareStatistics, RealChangesAreNotNoise) {
  const std::vector<double> half_slower{0, 0, 0, 0, 0, -0.1, -0.1, -0.1, -0.1};
  EXPECT_EQ(*run_noise(half_slower, {}).scatter, 0);
  const std::vector<double> all_slower(10, -0.05);
  EXPECT_NEAR(*run_noise(all_slower, {}).scatter, 0, 1e-12);
}

Change judged_change(double low, double ratio, double high, double q, Noise noise) {
  return {.ratio = ratio, .ci95 = Interval{low, high}, .noise = noise, .p = q, .q = q};
}

TEST(CompareVerdict, FollowsTheIntervalTheToleranceAndTheNoise) {
  const auto verdict = [](double low, double ratio, double high, double q, Noise noise = Noise::between_runs) {
    return judge(judged_change(low, ratio, high, q, noise), 0.03).verdict;
  };
  EXPECT_EQ(verdict(0.99, 1.0, 1.01, 1), Direction::same);
  EXPECT_EQ(verdict(0.975, 0.98, 0.985, 0.001), Direction::same);  // it changed, within the tolerance
  EXPECT_EQ(verdict(0.93, 0.95, 0.98, 0.01), Direction::slower);
  EXPECT_EQ(verdict(1.01, 1.05, 1.09, 0.01), Direction::faster);
  EXPECT_EQ(verdict(0.93, 0.95, 0.98, 0.06), Direction::unknown);  // not significant over all cases
  EXPECT_EQ(verdict(0.96, 0.98, 0.99, 0.01), Direction::unknown);  // significant, perhaps within the tolerance
  // One run per side: the whole interval is beyond the tolerance, and noise between runs is ruled out.
  EXPECT_EQ(verdict(0.93, 0.95, 0.98, 0.01, Noise::within_run), Direction::unknown);
  EXPECT_EQ(verdict(0.93, 0.95, 0.96, 0.01, Noise::within_run), Direction::slower);
  EXPECT_EQ(verdict(0.93, 0.95, 0.96, 0.06, Noise::within_run), Direction::unknown);
}

TEST(CompareVerdict, KnowsWhetherItMayBeSlower) {
  EXPECT_TRUE(judge(judged_change(0.9, 1.0, 1.1, 1, Noise::between_runs), 0.03).may_be_slower);
  EXPECT_FALSE(judge(judged_change(0.98, 1.04, 1.1, 1, Noise::between_runs), 0.03).may_be_slower);
  EXPECT_TRUE(judge({.ratio = 0.5}, 0.03).may_be_slower);
  EXPECT_EQ(judge({.ratio = 0.5}, 0.03).verdict, Direction::unknown);
}

TEST(CompareWords, DigitsFollowTheInterval) {
  EXPECT_EQ(change_text(0.9049, Interval{0.8846, 0.9256}), "-10 %");  // +- 2: the first uncertain digit is the unit
  EXPECT_EQ(change_text(0.9049, Interval{0.9029, 0.9069}), "-9.5 %");
  EXPECT_EQ(change_text(1.02, std::nullopt), "+2.0 %");
  EXPECT_EQ(change_text(0.99999, Interval{0.98, 1.02}), "0 %");
  EXPECT_EQ(change_text(2.5, std::nullopt), "2.5 x");
  EXPECT_EQ(interval_text(Interval{0.8846, 0.9256}), "-11.5 .. -7.4 %");
  EXPECT_EQ(interval_text(Interval{0.8, 1.1}), "-20 .. +10 %");
  EXPECT_EQ(interval_text(Interval{0.8, 40}), "-20 .. > +999 %");
  EXPECT_EQ(interval_text(std::nullopt), "–");
  EXPECT_EQ(detectable_text(0.0308), "± 3.1 %");
  EXPECT_EQ(detectable_text(12.0), "> 999 %");
  EXPECT_EQ(detectable_text(std::nullopt), "–");
}

}  // namespace
}  // namespace assay::report::comparison
