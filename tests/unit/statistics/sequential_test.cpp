#include "harness/statistics/sequential.h"

#include "harness/core/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace assay {
namespace {

// Adds pairs until the verdict, at most `limit`.
PairedTest decided(double tolerance, double error, int limit, auto&& next) {
  PairedTest test(tolerance, error);
  for (int i = 0; i < limit && test.verdict() == Direction::unknown; ++i) test.add(next(i));
  return test;
}

TEST(Sequential, FiguresWithoutNoiseAreDecidedInAFewPairs) {
  const PairedTest same = decided(0.02, 0.05, 100, [](int) { return 0.0; });
  EXPECT_EQ(same.verdict(), Direction::same);
  EXPECT_EQ(same.estimate(), 0);
  EXPECT_LE(same.pairs(), 10u);
  const PairedTest faster = decided(0.02, 0.05, 100, [](int) { return std::log(1.1); });
  EXPECT_EQ(faster.verdict(), Direction::faster);
  EXPECT_NEAR(faster.estimate(), std::log(1.1), 1e-12);
  EXPECT_LE(faster.pairs(), 8u);
  EXPECT_EQ(decided(0.02, 0.05, 100, [](int) { return -std::log(1.1); }).verdict(), Direction::slower);
  // Changes just within and just beyond the tolerance.
  EXPECT_EQ(decided(0.02, 0.05, 1000, [](int) { return std::log(1.019); }).verdict(), Direction::same);
  EXPECT_EQ(decided(0.02, 0.05, 1000, [](int) { return std::log(0.981); }).verdict(), Direction::same);
  EXPECT_EQ(decided(0.02, 0.05, 1000, [](int) { return std::log(1.021); }).verdict(), Direction::faster);
  EXPECT_EQ(decided(0.02, 0.05, 1000, [](int) { return std::log(0.979); }).verdict(), Direction::slower);
}

// Exact, by all 2^n orders of n pairs: with any sizes, "no change" is called a change in at most 5 % of them, and a
// change of the tolerance is called the same in at most 5 %, at whatever pair one stops.
TEST(Sequential, NoSizesOfThePairsMakeItWrongMoreOftenThanSaid) {
  constexpr int n = 12;
  const std::vector<std::vector<double>> sizes{
      std::vector<double>(n, 0.05),
      std::vector<double>(n, 0.001),
      {0.5, 0.001, 0.001, 0.5, 0.001, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01},
      {0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1, 2},
      {2, 1, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005},
      {0.03, 0.01, 0.05, 0.02, 0.04, 0.03, 0.02, 0.06, 0.01, 0.03, 0.05, 0.02}};
  for (const double theta : {0.0, std::log1p(0.1), std::log1p(-0.1)})
    for (const auto& all : sizes)
      for (const double error : {0.05, 0.4}) {
        int wrong = 0;
        for (unsigned order = 0; order < 1u << n; ++order) {
          PairedTest test(0.1, error);
          bool ever = false;
          for (unsigned i = 0; i < n && !ever; ++i) {
            test.add(theta + (order >> i & 1 ? all[i] : -all[i]));
            const Direction verdict = test.verdict();
            ever =
                theta == 0 ? verdict == Direction::faster || verdict == Direction::slower : verdict == Direction::same;
          }
          wrong += ever;
        }
        EXPECT_LE(wrong, error * (1u << n)) << theta << " " << all[0] << " " << error;
      }
}

TEST(Sequential, TheIntervalAgreesWithTheVerdict) {
  PairedTest none(0.02, 0.05);
  EXPECT_EQ(none.verdict(), Direction::unknown);
  EXPECT_EQ(none.estimate(), 0);
  EXPECT_EQ(none.interval().low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(none.interval().high, std::numeric_limits<double>::infinity());
  const auto noise = [](int i) { return 0.03 * std::sin(2.4 * i * i); };
  const PairedTest same = decided(0.02, 0.05, 1000, noise);
  ASSERT_EQ(same.verdict(), Direction::same);
  EXPECT_GE(same.interval().low, std::log1p(-0.02));
  EXPECT_LE(same.interval().high, std::log1p(0.02));
  const PairedTest slower = decided(0.02, 0.05, 1000, [&](int i) { return noise(i) - 0.05; });
  ASSERT_EQ(slower.verdict(), Direction::slower);
  EXPECT_LT(slower.interval().high, 0);
  EXPECT_LT(slower.interval().low, -0.05);
  // More pairs make it narrower, around the truth.
  PairedTest longer = slower;
  for (int i = 0; i < 2000; ++i) longer.add(noise(i + 1000) - 0.05);
  EXPECT_GT(longer.interval().low, -0.056);
  EXPECT_LT(longer.interval().high, -0.044);
  EXPECT_LT(longer.interval().low, -0.05);
  EXPECT_GT(longer.interval().high, -0.05);
}

TEST(Sequential, BothSidesAreTreatedAlikeAndOutliersDoNotDecide) {
  const auto noise = [](int i) { return 0.02 * std::sin(2.4 * i * i) + (i % 9 == 4 ? 3 : i % 9 == 8 ? -3 : 0); };
  const PairedTest up = decided(0.02, 0.05, 2000, [&](int i) { return noise(i) + 0.1; });
  const PairedTest down = decided(0.02, 0.05, 2000, [&](int i) { return -noise(i) - 0.1; });
  EXPECT_EQ(up.verdict(), Direction::faster);
  EXPECT_EQ(down.verdict(), Direction::slower);
  EXPECT_LE(up.pairs(), 30u);
  EXPECT_EQ(up.pairs(), down.pairs());
  EXPECT_NEAR(up.estimate(), 0.1, 0.02);
}

TEST(Sequential, RefusesWhatHasNoMeaning) {
  EXPECT_THROW(PairedTest(0, 0.05), Error);
  EXPECT_THROW(PairedTest(1, 0.05), Error);
  EXPECT_THROW(PairedTest(0.02, 0), Error);
  EXPECT_THROW(PairedTest(0.02, 1), Error);
  PairedTest test(0.02, 0.05);
  EXPECT_THROW(test.add(std::numeric_limits<double>::infinity()), Error);
  EXPECT_THROW(test.add(std::nan("")), Error);
  EXPECT_EQ(test.pairs(), 0u);
}

}  // namespace
}  // namespace assay
