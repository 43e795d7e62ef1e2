// MLLOG lines in the format of mlcommons' parser, with times that never decrease.
#include "workloads/training/mllog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace assay::training {
namespace {

TEST(MlLog, WritesLinesThatTheParserReads) {
  std::vector<std::pair<std::string, bool>> lines;
  std::vector<std::int64_t> times = {1000, 990, 1010};
  std::size_t next = 0;
  MlLog log([&](std::string_view text, bool truncate) { lines.emplace_back(text, truncate); },
            [&] { return times[next++]; });
  log.point("seed", 7);
  log.start("run_start");
  log.point("eval_accuracy", 0.5, {{"samples_count", 320}});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].second);
  EXPECT_FALSE(lines[1].second);
  std::vector<Json> parsed;
  for (const auto& [text, truncate] : lines) {
    ASSERT_THAT(text, testing::StartsWith(":::MLLOG {"));
    EXPECT_EQ(text.back(), '\n');
    parsed.push_back(Json::parse(text.substr(9)));
    for (const char* member : {"namespace", "time_ms", "event_type", "key", "value", "metadata"})
      EXPECT_TRUE(parsed.back().contains(member)) << member;
  }
  EXPECT_EQ(parsed[0]["value"], 7);
  EXPECT_EQ(parsed[1]["time_ms"], 1000);  // the clock went back
  EXPECT_EQ(parsed[1]["event_type"], "INTERVAL_START");
  EXPECT_EQ(parsed[2]["metadata"]["samples_count"], 320);
}

}  // namespace
}  // namespace assay::training
