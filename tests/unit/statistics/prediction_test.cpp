// Prediction limits beside values worked out by hand and beside simulated groups.
#include "harness/statistics/prediction.h"

#include "harness/core/rng.h"
#include "harness/statistics/outliers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay {
namespace {

using Groups = std::vector<std::vector<double>>;

// 1 to 6: mean 3.5, variance 3.5. One more: variance 3.5 (1 + 1/6), and t(3, .95) = 2.3534, as of 5 degrees of freedom
// three are trusted.
TEST(Prediction, OfSingleValuesIsStudentsWithFewerDegreesOfFreedom) {
  const Prediction single = predict_new_group(Groups{{1}, {2}, {3}, {4}, {5}, {6}});
  EXPECT_DOUBLE_EQ(single.mean, 3.5);
  EXPECT_NEAR(single.margin(0.05), 2.3534 * std::sqrt(3.5 * 7 / 6), 1e-3);
  EXPECT_NEAR(*single.between, std::sqrt(3.5), 1e-12);
  EXPECT_FALSE(single.within);
  const Prediction same = predict_same_group(std::vector<double>{1, 2, 3, 4, 5, 6});
  EXPECT_DOUBLE_EQ(same.margin(0.05), single.margin(0.05));
  EXPECT_NEAR(*same.within, std::sqrt(3.5), 1e-12);
  // No number of units is trusted beyond t(4.5, .999) = 6.42124.
  EXPECT_NEAR(single.margin(0.001, 1000000), 6.42124 * std::sqrt(3.5), 1e-3);
  EXPECT_FALSE(same.between);
}

// Means 2, 4, .. 12 (variance 14); within: squares of 2 for each of 6 degrees of freedom: 2. Between: 14 - 2 / 2 = 13.
// A new value: 14 + (1 - 1/2) 2 = 15; the mean: 14 / 6. t(3, .99) = 4.5407.
TEST(Prediction, SplitsTheVarianceOfBalancedGroups) {
  const Prediction found = predict_new_group(Groups{{1, 3}, {3, 5}, {5, 7}, {7, 9}, {9, 11}, {11, 13}});
  EXPECT_DOUBLE_EQ(found.mean, 7);
  EXPECT_NEAR(*found.within, std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(*found.between, std::sqrt(13.0), 1e-12);
  EXPECT_NEAR(found.sigma, std::sqrt(15.0), 1e-12);
  EXPECT_NEAR(found.margin(0.01), 4.5407 * std::sqrt(15 + 14.0 / 6), 1e-3);
  EXPECT_LT(found.margin(0.01, 30), found.margin(0.01));
}

// One degree of freedom within does not tell what single values do: the last of each group are taken, 3, 3, 7 and 8.
TEST(Prediction, TakesSingleValuesIfRepeatsAreTooFew) {
  const Prediction found = predict_new_group(Groups{{1, 3}, {3}, {7}, {8}});
  EXPECT_DOUBLE_EQ(found.mean, 5.25);
  EXPECT_NEAR(found.sigma, std::sqrt(20.75 / 3), 1e-12);
  EXPECT_NEAR(*found.within, std::sqrt(2.0), 1e-12);
}

TEST(Prediction, HoldsItsErrorWhateverTheRatioOfVariances) {
  constexpr std::size_t trials = 20000, groups = 5, values = 4;
  for (const double between : {0.0, 0.3, 1.0, 5.0}) {
    const Rng random(7, "prediction");
    std::uint64_t used = 0;
    std::size_t missed[2] = {};
    for (std::size_t trial = 0; trial < trials; ++trial) {
      Groups seen(groups);
      for (auto& group : seen) {
        const double level = between * random.normal(used++);
        for (std::size_t i = 0; i < values; ++i) group.push_back(level + random.normal(used++));
      }
      const double level = between * random.normal(used++);
      const double fresh = level + random.normal(used++);
      const Prediction found = predict_new_group(seen);
      missed[0] += fresh < found.mean - found.margin(0.05);
      missed[1] += fresh > found.mean + found.margin(0.005);
    }
    // Three standard errors.
    EXPECT_LE(static_cast<double>(missed[0]) / trials, 0.05 + 0.0047) << between;
    EXPECT_LE(static_cast<double>(missed[1]) / trials, 0.005 + 0.0015) << between;
  }
}

// The example of Rosner (Technometrics 1983), as the NIST/SEMATECH handbook (1.3.5.17.3) gives it: three outliers at
// 5 %, though the first two alone do not stand out.
TEST(ExtremeDeviates, FindsOutliersThatMaskEachOther) {
  const std::vector<double> rosner{-0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56,
                                   1.58,  1.65, 1.69, 1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10,
                                   2.14,  2.15, 2.23, 2.24, 2.26, 2.35, 2.37, 2.40, 2.47, 2.54, 2.62, 2.64, 2.90, 2.92,
                                   2.92,  2.93, 3.21, 3.26, 3.30, 3.59, 3.68, 4.30, 4.64, 5.34, 5.42, 6.01};
  EXPECT_THAT(extreme_deviates(rosner, 10, 0.05), testing::ElementsAre(53, 52, 51));
  EXPECT_THAT(extreme_deviates(rosner, 2, 0.05), testing::IsEmpty());
  EXPECT_THAT(extreme_deviates(std::vector<double>{1, 1, 1, 1}, 1, 0.05), testing::IsEmpty());
  EXPECT_THAT(extreme_deviates(std::vector<double>{1, 1.01, 0.99, 1, 5, 1.005}, 1, 0.01), testing::ElementsAre(4));
}

}  // namespace
}  // namespace assay
