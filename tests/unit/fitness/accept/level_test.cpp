// Levels of acceptances, and what they make a request run.
#include "harness/fitness/accept/request.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace assay::accept {
namespace {

using testing::HasSubstr;

TEST(AcceptLevel, AShareOfNothingIsRefused) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "level.json";
  const auto refused = [&](const char* share) {
    std::ofstream(file) << R"({"schema":1,"host":[],"pair_share":")" << share << R"("})";
    return test::refusal([&] { (void)read_level(file.string(), DeviceKind::cpu); });
  };
  EXPECT_EQ(refused("60%"), "");
  EXPECT_THAT(refused("0%"), HasSubstr("/pair_share: must be above 0"));
}

TEST(AcceptLevel, SaysHowManyRanksACpuHostTakes) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "level.json";
  const auto write = [&](const char* ranks) {
    std::ofstream(file) << R"({"schema":1,"host":[],"ranks_per_host":)" << ranks << "}";
    return file.string();
  };
  EXPECT_EQ(read_level(write(R"({"cpu":4})"), DeviceKind::cpu).cpu_ranks, 4);
  EXPECT_THAT(test::refusal([&] { (void)read_level(write(R"({"cpu":0})"), DeviceKind::cpu); }),
              HasSubstr("/ranks_per_host/cpu"));
  EXPECT_THAT(test::refusal([&] { (void)read_level(write(R"({"cuda":4})"), DeviceKind::cpu); }), HasSubstr("cuda"));
}

TEST(AcceptRequest, WhyAStageIsNotRun) {
  Request request;
  request.level.name = "tiny";
  request.level.plans["pairs"] = {"product"};
  request.level.not_run["training"] = "it takes too long";
  EXPECT_EQ(request.why_not_run("pairs", 1), "it needs two hosts");
  EXPECT_EQ(request.why_not_run("pairs", 2), "");
  EXPECT_EQ(request.why_not_run("host", 2), "level tiny has no plan for it on cpu");
  EXPECT_EQ(request.why_not_run("training", 2), "it takes too long");
  EXPECT_EQ(request.why_not_run("audit", 2), "");
  EXPECT_FALSE(request.ranks_of("host", 3));
  EXPECT_EQ(request.ranks_of("pairs", 3), 3);
  request.ranks_per_host = 2;  // of a level with "ranks_per_host": {"cpu": 2}
  EXPECT_EQ(request.ranks_of("host", 3), 2);
  EXPECT_EQ(request.ranks_of("pairs", 3), 6);
  request.device = DeviceKind::cuda, request.ranks_per_host = 8;
  EXPECT_EQ(request.ranks_of("host", 3), 8);
  EXPECT_EQ(request.ranks_of("pairs", 3), 24);
}

}  // namespace
}  // namespace assay::accept
