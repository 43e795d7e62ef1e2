#include "harness/runs/step_shares.h"

#include "tests/support/runs.h"

#include <gmock/gmock.h>

#include <cmath>

namespace assay {
namespace {

using testing::HasSubstr;

Record step(double seconds, std::vector<std::pair<std::string, double>> spans) {
  Record record = test::record_of("transformer/model=gpt2-tiny", {test::seconds("step_time", seconds)});
  record.spans = std::move(spans);
  return record;
}

TEST(StepShares, PartsAreSharesOfTheStepAndOfTheirSumWhereTheyDoNotFit) {
  const Record fits = step(2, {{"forward", 0.5}, {"exposed_communication", 0.25}, {"setup", 100}});
  EXPECT_DOUBLE_EQ(step_share(fits, "forward").value(), 0.25);
  EXPECT_DOUBLE_EQ(step_share(fits, "forward", 4).value(), 0.125);
  const Record longer = step(1, {{"forward", 3}, {"backward", 1}});
  EXPECT_DOUBLE_EQ(step_share(longer, "forward").value(), 0.75);
  EXPECT_FALSE(step_share(longer, "optimizer"));
  EXPECT_FALSE(step_share(step(0, {{"forward", 1}}), "forward"));
  EXPECT_FALSE(step_share(step(1, {{"forward", std::nan("")}}), "forward"));
}

// 71.5 of 83.4 ms wait, and the step without an exchange takes 0.8 ms less.
TEST(StepShares, WhatWaitsAndWhatMutingSavesAreTwoFiguresThatSayWhyTheyDiffer) {
  Record record = step(83.4e-3, {{"exposed_communication", 71.5e-3}, {"backward", 5e-3}});
  record.world_ranks = 2;
  EXPECT_EQ(communication_share(record)->by_muting(), "");
  EXPECT_TRUE(communication_share(record)->agree());
  record.metrics.push_back(test::seconds("exposed_communication", 0.8e-3));
  const auto share = communication_share(record);
  ASSERT_TRUE(share);
  EXPECT_NEAR(share->pending, 71.5 / 83.4, 1e-12);
  EXPECT_NEAR(share->muted.value(), 0.8 / 83.4, 1e-12);
  EXPECT_FALSE(share->agree());
  EXPECT_THAT(share->by_muting(), HasSubstr("by muting 0.959 %, because a rank that waits"));
  EXPECT_EQ((CommunicationShare{0.20, 0.23}.by_muting()), "by muting 23 %");
  EXPECT_THAT((CommunicationShare{0.20, 0.5}.by_muting()), HasSubstr("slows the computation beside it"));
}

}  // namespace
}  // namespace assay
