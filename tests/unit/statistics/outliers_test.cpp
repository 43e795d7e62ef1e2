#include "harness/statistics/outliers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay {
namespace {

TEST(Outliers, ScoresAreThoseOfIglewiczAndHoaglin) {
  // Their example: the data of section 3.3.
  const std::vector<double> values{2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3};
  const Robust found = robust(values);
  EXPECT_DOUBLE_EQ(found.median, 2.45);
  EXPECT_NEAR(found.mad, 0.15, 1e-12);
  EXPECT_NEAR(found.score(8.2), 0.6745 * 5.75 / 0.15, 1e-9);
  EXPECT_TRUE(is_outlier(8.2, found));
  EXPECT_TRUE(is_outlier(8.3, found));
  EXPECT_FALSE(is_outlier(2.1, found));
}

TEST(Outliers, ValuesWithinThreePercentOfTheMedianAreNotOutliers) {
  const std::vector<double> values{1, 1, 1, 1, 1, 1, 1, 1.029, 1.031, 0.9};
  const Robust found = robust(values);
  EXPECT_EQ(found.mad, 0);
  EXPECT_TRUE(std::isinf(found.score(1.029)));
  EXPECT_FALSE(is_outlier(1.029, found));
  EXPECT_TRUE(is_outlier(1.031, found));
  EXPECT_TRUE(is_outlier(0.9, found));
  EXPECT_EQ(found.score(0.9), -INFINITY);
  EXPECT_EQ(found.score(1), 0);
}

}  // namespace
}  // namespace assay
