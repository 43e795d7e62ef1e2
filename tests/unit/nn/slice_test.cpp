// Steps of slices added up to the whole model's: known numbers.
#include "harness/core/error.h"
#include "workloads/transformer/slice_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace assay::transformer {
namespace {

// Steps of a model that takes 6 s outside its layers and 2 s in each, on a machine that takes `pace` times as long.
std::vector<double> steps(double layers, const std::vector<double>& pace) {
  std::vector<double> seconds;
  for (const double each : pace) seconds.push_back(each * (6 + 2 * layers));
  return seconds;
}

double width(const Estimated& figure) { return figure.ci95.value().high - figure.ci95.value().low; }

// 40 steps on a steady machine, and on one that slows down by half.
const std::vector<double> steady(40, 1.0);
std::vector<double> slowing() {
  std::vector<double> pace;
  for (int i = 0; i < 40; ++i) pace.push_back(1 + i / 78.0);
  return pace;
}

TEST(SliceSums, AddLayersToWhatIsOutsideThem) {
  const auto few = steps(2, steady), more = steps(4, steady), whole = steps(12, steady);
  const auto sum = sum_of_slices({few, more, whole}, 12);
  ASSERT_TRUE(sum);
  EXPECT_DOUBLE_EQ(sum->layer.value, 2);
  EXPECT_DOUBLE_EQ(sum->outside.value, 6);
  EXPECT_DOUBLE_EQ(sum->step.value, 6 + 12 * 2);
  EXPECT_DOUBLE_EQ(sum->over_whole.value().value, 1);
  EXPECT_DOUBLE_EQ(width(sum->step), 0);
  EXPECT_FALSE(sum_of_slices({few, more, {}}, 12)->over_whole);
}

TEST(SliceSums, OfTheLargerSliceAreWhatWasMeasured) {
  const auto few = steps(2, slowing()), more = steps(4, slowing());
  const auto sum = sum_of_slices({few, more, {}}, more_layers);
  ASSERT_TRUE(sum);
  EXPECT_DOUBLE_EQ(sum->step.value, median(more));
  EXPECT_NEAR(width(sum->step), width(estimated_median(more)), 1e-9);
}

TEST(SliceSums, CompareWithTheWholeWhateverSlowsBoth) {
  const auto few = steps(2, slowing()), more = steps(4, slowing()), whole = steps(12, slowing());
  const auto sum = sum_of_slices({few, more, whole}, 12);
  ASSERT_TRUE(sum && sum->over_whole);
  EXPECT_GT(width(sum->step), 0.1 * sum->step.value);
  EXPECT_NEAR(sum->over_whole->value, 1, 1e-12);
  EXPECT_LT(width(*sum->over_whole), 1e-12);
}

// step = 5 more - 4 few.
TEST(SliceSums, CarryTheErrorsOfBoth) {
  std::vector<double> few = steps(2, steady), more = steps(4, steady);
  for (std::size_t i = 0; i < few.size(); ++i) few[i] += i % 4 < 2 ? 0.1 : -0.1;
  const double of_few = width(estimated_median(few));
  EXPECT_GT(of_few, 0);
  EXPECT_NEAR(width(sum_of_slices({few, more, {}}, 12)->step), 4 * of_few, 1e-9);
  EXPECT_NEAR(width(sum_of_slices({few, more, {}}, 12)->layer), of_few / 2, 1e-9);
  for (std::size_t i = 0; i < more.size(); ++i) more[i] += i % 8 < 4 ? 0.1 : -0.1;
  EXPECT_GT(width(sum_of_slices({few, more, {}}, 12)->step), 5 * of_few);
}

TEST(SliceSums, NeedLayersThatTakeTimeAndSixSteps) {
  const auto few = steps(2, steady), more = steps(4, steady);
  EXPECT_FALSE(sum_of_slices({more, few, {}}, 12));
  EXPECT_FALSE(sum_of_slices({few, few, {}}, 12));
  const auto short_few = std::span(few).first(5), short_more = std::span(more).first(5);
  EXPECT_FALSE(sum_of_slices({short_few, short_more, {}}, 12)->step.ci95);
  EXPECT_THROW(sum_of_slices({few, short_more, {}}, 12), Error);
}

TEST(Rates, TurnTheInterval) {
  const Estimated rate = rate_of(30, {10, Interval{9, 12}});
  EXPECT_DOUBLE_EQ(rate.value, 3);
  EXPECT_DOUBLE_EQ(rate.ci95.value().low, 30.0 / 12);
  EXPECT_DOUBLE_EQ(rate.ci95.value().high, 30.0 / 9);
  EXPECT_FALSE(rate_of(30, {10, {}}).ci95);
  EXPECT_FALSE(rate_of(30, {10, Interval{-1, 12}}).ci95);
}

}  // namespace
}  // namespace assay::transformer
