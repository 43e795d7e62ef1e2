// Slices of divided state, and layouts that cannot be planned.
#include "workloads/parallel/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay::parallel {
namespace {

using testing::HasSubstr;

TEST(Slices, AreEquallyLongAndStartOnCacheLines) {
  EXPECT_EQ(slice_of(64, 1), 64);
  EXPECT_EQ(slice_of(64, 4), 16);
  EXPECT_EQ(slice_of(65, 4), 32);
  EXPECT_EQ(slice_of(1, 8), 16);
  for (const std::int64_t elements : {1, 100, 4096, 999999})
    for (const std::int64_t dp : {1, 2, 3, 7, 64, 1024}) {
      EXPECT_GE(slice_of(elements, dp) * dp, elements);
      EXPECT_EQ(slice_of(elements, dp) % slice_alignment, 0);
      EXPECT_LT(slice_of(elements, dp) * dp, elements + dp * (slice_alignment + 1));
    }
}

// Two blocks that 8 ranks divide without padding.
const std::vector<std::int64_t> blocks = {1 << 20, 1 << 21};
constexpr double parameters = 3 << 20;

double per_parameter(int zero, std::int64_t dp, const StateTypes& types) {
  const StateBytes state = state_bytes(blocks, types, {.dp = dp, .zero = zero});
  return static_cast<double>(state.weights + state.gradients + state.optimizer) / parameters;
}

// 16, 8 + 8/d, 4 + 12/d, 16/d in f32; 18, 6 + 12/d, 2 + 16/d, 18/d with 16-bit copies.
TEST(State, HasTheBytesPerParameterOfItsStage) {
  const StateTypes f32{}, bf16{.parameter = 2};
  for (const double d : {2.0, 4.0, 8.0}) {
    const auto dp = static_cast<std::int64_t>(d);
    EXPECT_DOUBLE_EQ(per_parameter(0, dp, f32), 16);
    EXPECT_DOUBLE_EQ(per_parameter(1, dp, f32), 8 + 8 / d);
    EXPECT_DOUBLE_EQ(per_parameter(2, dp, f32), 4 + 12 / d);
    EXPECT_DOUBLE_EQ(per_parameter(3, dp, f32), 16 / d);
    EXPECT_DOUBLE_EQ(per_parameter(0, dp, bf16), 18);
    EXPECT_DOUBLE_EQ(per_parameter(1, dp, bf16), 6 + 12 / d);
    EXPECT_DOUBLE_EQ(per_parameter(2, dp, bf16), 2 + 16 / d);
    EXPECT_DOUBLE_EQ(per_parameter(3, dp, bf16), 18 / d);
  }
  EXPECT_DOUBLE_EQ(per_parameter(0, 1, {.moments = 1}), 12);
}

TEST(State, IsPaddedBlockByBlock) {
  const std::vector<std::int64_t> odd = {17, 33};
  const StateBytes state = state_bytes(odd, {}, {.dp = 2, .zero = 3});
  EXPECT_EQ(state.weights, 4u * (16 + 32));
  EXPECT_EQ(state.optimizer, 8u * (16 + 32));
}

TEST(State, NeedsTheBlocksThatAreComputedWhole) {
  const std::vector<std::int64_t> three = {1024, 4096, 2048};
  const auto communication = [&](int zero) {
    return state_bytes(three, {.parameter = 2}, {.dp = 4, .zero = zero}).communication;
  };
  EXPECT_EQ(communication(0), 0u);
  EXPECT_EQ(communication(1), 0u);
  EXPECT_EQ(communication(2), 4u * (4096 + 2048));
  EXPECT_EQ(communication(3), (4u + 2u) * (4096 + 2048));
}

TEST(Layout, IsRefusedWithTheNearestThatWorks) {
  EXPECT_FALSE(problem_of({.dp = 8, .zero = 3}));
  EXPECT_THAT(problem_of({.zero = 4}).value_or(""), HasSubstr("use zero=3"));
  EXPECT_THAT(problem_of({.zero = -1}).value_or(""), HasSubstr("use zero=0"));
  EXPECT_THAT(problem_of({.tp = 2}).value_or(""), HasSubstr("use tp=1"));
  EXPECT_THAT(problem_of({.pp = 2}).value_or(""), HasSubstr("use pp=1"));
  EXPECT_THAT(problem_of({.dp = 0}).value_or(""), HasSubstr("from 1 to 16384"));
}

}  // namespace
}  // namespace assay::parallel
