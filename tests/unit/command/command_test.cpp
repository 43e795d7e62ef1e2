// Commands as cases: figures, failures with their last lines, warm-up, what their processes use.
#include "suites/command/command.h"

#include "tests/support/case_runner.h"

#include <gmock/gmock.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class CommandFamily : public testing::Test {
 protected:
  test::Outcome run(std::map<std::string, ParamValue> params) {
    params.try_emplace("runs", std::int64_t{3});
    const auto comm = make_self_communicator();
    return test::run_case(command_family(), params, *comm);
  }
  static std::optional<std::string> conflict_of(const std::map<std::string, std::string>& texts) {
    Params params;
    params.set("argv", std::string("true"));
    for (const auto& [name, value] : texts) params.set(name, value);
    return command_family().conflict(params, {});
  }
};

TEST_F(CommandFamily, ItsTimeIsTheFigureUnlessOneIsNamed) {
  const test::Outcome out = run({{"argv", "sleep 0.02"}});
  EXPECT_TRUE(out.check("exit_code").passed);
  EXPECT_THAT(out.measurement.values, SizeIs(3));
  EXPECT_EQ(out.metrics.front().name, "wall_time");
  EXPECT_GE(*out.metric("wall_time").value, 0.02);
  EXPECT_LT(*out.metric("user_time").value + *out.metric("system_time").value, *out.metric("wall_time").value);
}

TEST_F(CommandFamily, TheFigureIsTheMedianOfWhatTheRunsPrint) {
  const test::Outcome out =
      run({{"argv", "printf 'rate: 2 kB/s\\nrate: 4 kB/s\\nrate: 3 kB/s\\n'"}, {"metric", "rate"}});
  EXPECT_EQ(out.metrics.front().name, "rate");
  EXPECT_EQ(out.metrics.front().value, 3000.0);
  EXPECT_EQ(out.metrics.front().unit, "B/s");
  EXPECT_EQ(out.metrics.front().better, Better::higher);
}

TEST_F(CommandFamily, ItsVariablesAndTheTimeOfAllItsProcessesCount) {
  const test::Outcome out =
      run({{"env", "LOOPS=200000 TEXT='a b'"},
           {"argv", "echo score $LOOPS; sh -c 'i=0; while [ $i -lt $LOOPS ]; do i=$((i+1)); done'"},
           {"metric", "score"},
           {"better", "higher"},
           {"unit", "points"},
           {"runs", std::int64_t{1}}});
  ASSERT_TRUE(out.check("exit_code").passed) << out.check("exit_code").detail.front();
  EXPECT_EQ(out.metric("score").value, 200000.0);
  EXPECT_EQ(out.metric("score").unit, "points");
  EXPECT_GT(*out.metric("user_time").value, 0.02);
  EXPECT_GT(*out.metric("peak_memory").value, 100000.0);
}

TEST_F(CommandFamily, AFailedRunLeavesItsLastLines) {
  const test::Outcome out = run({{"argv", "seq 1 30; echo to the errors >&2; exit 7"}});
  const Check& check = out.check("exit_code");
  EXPECT_FALSE(check.passed);
  ASSERT_THAT(check.detail, SizeIs(20));
  EXPECT_EQ(check.detail.front(), "warm-up 1: ended with code 7");
  EXPECT_EQ(check.detail[1], "13");
  EXPECT_EQ(check.detail.back(), "to the errors");
  EXPECT_THAT(out.metrics, SizeIs(0));
}

TEST_F(CommandFamily, AMissingFigureAndATimeoutAreFailures) {
  const test::Outcome missing = run({{"argv", "echo loss: 2"}, {"metric", "los"}, {"better", "lower"}});
  EXPECT_FALSE(missing.check("figure").passed);
  EXPECT_THAT(missing.check("figure").detail.front(), HasSubstr("loss"));
  const test::Outcome late = run({{"argv", "echo begun; sleep 60"}, {"timeout", 0.2}});
  EXPECT_THAT(late.check("exit_code").detail, ElementsAre("warm-up 1: no end within 200 ms", "begun"));
}

TEST(CommandSeries, RunsWhoseSeriesAreLeftOutAreCounted) {
  command::SeriesOfRuns series;
  const Series of_run{"1", std::vector<double>(2048, 1.0), std::vector<std::optional<double>>(2048, 2.0)};
  for (int run = 0; run < 2; ++run) series.add({{"job_cpu", of_run}, {"job_memory", of_run}});
  EXPECT_EQ(series.cut(), "");  // 4,096 points are kept
  for (int run = 0; run < 3; ++run) series.add({{"job_cpu", of_run}});
  EXPECT_EQ(series.cut(), "job series cover the first 2 of 5 runs: no more than 4096 points are kept");
  const auto kept = series.take();
  EXPECT_EQ(kept.at("job_cpu").at.size(), 4096u);
  EXPECT_EQ(kept.at("job_cpu").values.size(), kept.at("job_memory").values.size());
  EXPECT_EQ(kept.at("job_cpu").unit, "1");
}

TEST_F(CommandFamily, WhatCannotBeRunIsRefusedBefore) {
  EXPECT_FALSE(conflict_of({}));
  EXPECT_THAT(*conflict_of({{"argv", " "}}), HasSubstr("argv is empty"));
  EXPECT_THAT(*conflict_of({{"unit", "tokens/s"}}), HasSubstr("belongs to a metric"));
  EXPECT_THAT(*conflict_of({{"metric", "wall_time"}}), HasSubstr("anyway"));
  EXPECT_FALSE(conflict_of({{"env", "A=1 B='x; y' C=\"a b\" D=a\\ b E="}}));
  EXPECT_THAT(*conflict_of({{"env", "A=1 B"}}), HasSubstr("\"B\" is not NAME=VALUE"));
  EXPECT_THAT(*conflict_of({{"env", "A=1;reboot"}}), HasSubstr("single quotes"));
  EXPECT_THAT(*conflict_of({{"env", "A='1"}}), HasSubstr("not closed"));
}

}  // namespace
}  // namespace assay
