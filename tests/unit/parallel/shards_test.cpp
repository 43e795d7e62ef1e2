// Slices of divided state, and layouts that cannot be planned.
#include "workloads/parallel/shards.h"
#include "workloads/parallel/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
