// A history in the forms of other programs.
#include "harness/history/export.h"

#include "harness/core/error.h"
#include "harness/json/json.h"
#include "tests/unit/history/made.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::history {
namespace {

using test::Made;
using testing::ElementsAre;
using testing::StartsWith;

std::vector<std::string> lines(const store::Contents& contents, const ExportRequest& request) {
  std::vector<std::string> all;
  export_history(contents, request, [&](std::string line) { all.push_back(std::move(line)); });
  return all;
}

// Two series of two runs on machine a, the second without a figure of the later run; one series on machine b.
store::Contents contents() {
  Made made;
  made.run("a", 0, {{"gpu.driver", "1"}}, "c1").started = "2024-10-04T00:00:00Z";
  made.point(made.series("a", "f/n=2"), 8);
  made.point(made.series("a", "f/n=1"), 4);
  made.run("a", 1, {}, "c2").started = "2024-10-05T00:00:00Z";
  made.point(made.series("a", "f/n=2"), 16);
  made.run("b", 1).started = "2024-10-05T01:00:00Z";
  made.point(made.series("b", "f/n=1"), 2);
  for (store::Run& run : made.contents.runs) run.branch = "main";
  return made.contents;
}

TEST(Export, CsvIsARowPerFigureSortedBySeries) {
  const auto rows = lines(contents(), {.machine = "a"});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_THAT(rows[0], StartsWith("time,machine,case,"));
  EXPECT_THAT(rows[1], StartsWith("2024-10-04T00:00:00Z,a,f/n=1,throughput,FLOP/s,higher,4"));
  EXPECT_THAT(rows[3], StartsWith("2024-10-05T00:00:00Z,a,f/n=2,throughput,FLOP/s,higher,"));
}

TEST(Export, JsonHasEverything) {
  store::Contents all = contents();
  all.decisions.push_back({"d1", store::DecisionKind::mute, "f", "why", "ann", "2024-10-06T00:00:00Z", "2024-10-07"});
  all.events.push_back({"e1", "open", "{}"});
  std::vector<std::string> kinds;
  for (const std::string& line : lines(all, {.format = ExportFormat::jsonl, .series = "n=2"}))
    kinds.push_back(Json::parse(line)["kind"]);
  EXPECT_THAT(kinds, ElementsAre("run", "run", "run", "series", "point", "point", "decision", "event"));
}

TEST(Export, OtavaTakesOneMachineAndWholeRuns) {
  const auto code = [&](const ExportRequest& request) {
    try {
      lines(contents(), request);
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::ok;
  };
  testing::internal::CaptureStderr();
  EXPECT_THAT(lines(contents(), {.format = ExportFormat::otava, .machine = "a"}),
              ElementsAre("time,commit,f/n=1 throughput,f/n=2 throughput", StartsWith("2024-10-04T00:00:00Z,c1,4")));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("left out 1 run "));
  EXPECT_EQ(code({.format = ExportFormat::otava}), ExitCode::usage);
  EXPECT_EQ(code({.format = ExportFormat::otava, .series = "gone"}), ExitCode::no_data);
}

}  // namespace
}  // namespace assay::history
