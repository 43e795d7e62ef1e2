// Learning rates, compared with values computed by hand.
#include "workloads/training/recipe.h"

#include <gtest/gtest.h>

namespace assay::training {
namespace {

TEST(Schedule, WarmsUpLinearly) {
  const Schedule schedule{.base = 0.4, .warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 4), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 5), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate({.base = 0.4}, 1), 0.4);
}

TEST(Schedule, CosineFallsToItsEndAndStays) {
  const Schedule schedule{.base = 2, .warmup_steps = 10, .decay = Decay::cosine, .total_steps = 110, .end_factor = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 2);
  EXPECT_NEAR(learning_rate(schedule, 60), 2 * (0.1 + 0.9 / 2), 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 35), 2 * (0.1 + 0.9 * (1 + 0.70710678118654752) / 2), 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 110), 0.2, 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 5000), 0.2, 1e-12);
}

TEST(Schedule, PolynomialFallsByItsPower) {
  const Schedule schedule{.base = 1, .decay = Decay::polynomial, .total_steps = 100, .end_factor = 0, .power = 2};
  EXPECT_NEAR(learning_rate(schedule, 50), 0.25, 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 90), 0.01, 1e-12);
  EXPECT_NEAR(learning_rate(schedule, 100), 0, 1e-12);
}

TEST(Schedule, StepsDownAfterEachMilestone) {
  const Schedule schedule{.base = 1, .decay = Decay::step, .milestones = {10, 20}, .factor = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 11), 0.1);
  EXPECT_NEAR(learning_rate(schedule, 21), 0.01, 1e-15);
}

}  // namespace
}  // namespace assay::training
