// Series of a store as the detector sees them.
#include "harness/core/error.h"
#include "harness/history/series/split.h"
#include "harness/history/store/counts.h"
#include "tests/unit/history/made.h"

#include <gtest/gtest.h>

namespace assay::history {
namespace {

using test::first_night;
using test::Made;

TEST(TrackedSeries, HasTheMedianOfEachNightsUndisturbedRunsAndFasterIsUp) {
  Made made;
  for (const double value : {10.0, 30.0, 20.0}) {
    made.run("a", 1);
    made.point(made.series("a", "f/lower", Better::lower), value);
    made.point(made.series("a", "f/higher"), value, {}, value == 30);
  }
  made.run("a", 2);
  made.point(made.series("a", "f/lower", Better::lower), 5);
  const auto series = tracked_series(made.contents);
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].track.nights, (std::vector<Night>{first_night + 1, first_night + 2}));
  EXPECT_DOUBLE_EQ(series[0].track.values[0], -std::log(20.0));
  EXPECT_GT(series[0].track.values[1], series[0].track.values[0]) << "half the time is faster";
  EXPECT_NEAR(series[0].figure(series[0].track.values[0]), 20, 1e-9);
  EXPECT_DOUBLE_EQ(series[1].track.values[0], (std::log(10.0) + std::log(20.0)) / 2) << "without the disturbed run";
  EXPECT_EQ(series[0].name, "a: f/lower throughput");
}

// An older protocol on nights 0 to 5, a newer one on 5 to 8, twice as large.
Made with_protocols(bool common) {
  Made made;
  for (int night = 0; night <= 8; ++night) {
    made.run("a", night);
    if (night <= 5) made.point(made.series("a", "f"), 10);
    if (night >= (common ? 5 : 6)) made.point(made.series("a", "f", Better::higher, "q"), night == 8 ? 18 : 20);
  }
  made.contents.series[1].successor_of = 1;
  return made;
}

TEST(TrackedSeries, GoesOnInAnotherProtocolIfANightHasBoth) {
  const auto series = tracked_series(with_protocols(true).contents);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].number, 1);
  EXPECT_EQ(series[0].newest, 2);
  ASSERT_EQ(series[0].track.values.size(), 9u);
  for (int night = 0; night < 8; ++night) EXPECT_NEAR(series[0].track.values[night], std::log(10.0), 1e-12) << night;
  EXPECT_NEAR(series[0].track.values[8], std::log(9.0), 1e-12);
  EXPECT_NEAR(series[0].figure(series[0].track.values[8]), 18, 1e-9) << "figures are those of the newest protocol";
}

TEST(TrackedSeries, IsAnotherOneIfNoNightHasBoth) {
  const auto series = tracked_series(with_protocols(false).contents);
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[1].unbridged, 0u);
}

TEST(TrackedSeries, UnderAnotherNameGoesOnWithoutAnOffset) {
  Made made;
  for (int night = 0; night < 4; ++night) {
    made.run(night < 2 ? "old" : "new", night);
    made.point(made.series(night < 2 ? "old" : "new", "f"), 10 + night);
  }
  made.contents.series[1].successor_of = 1;
  const auto series = tracked_series(made.contents);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].identity.machine, "new");
  EXPECT_DOUBLE_EQ(series[0].track.values[3], std::log(13.0));
}

TEST(TrackedSeries, KnowsWhenHardwareWasReplaced) {
  Made made;
  for (int night = 0; night < 4; ++night) {
    made.run("a", night).hardware = night < 2 ? "x" : "y";
    made.point(made.series("a", "f"), 10);
  }
  EXPECT_EQ(tracked_series(made.contents)[0].track.replaced, (std::vector<Night>{first_night + 2}));
}

TEST(TrackedGroups, AreMachinesFamiliesAndFleetsOfFive) {
  Made made;
  for (int machine = 0; machine < 5; ++machine) {
    made.run("m" + std::to_string(machine), 0);
    const int cases = machine == 0 ? 5 : 1;
    for (int one = 0; one < cases; ++one) {
      const std::string key = "gemm/n=" + std::to_string(one);
      made.point(made.series("m" + std::to_string(machine), key), 1);
    }
  }
  const auto series = tracked_series(made.contents);
  const auto groups = tracked_groups(series);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].name, "gemm on m0");
  EXPECT_EQ(groups[1].name, "m0");
  EXPECT_EQ(groups[2].name, "gemm/n=0 throughput on all machines") << "the last to get its fifth member";
  EXPECT_EQ(groups[2].group.members, (std::vector<std::size_t>{0, 5, 6, 7, 8}));
}

TEST(Patterns, MatchAnywhereOrAsWhole) {
  EXPECT_TRUE(matches("gemm", "node1: gemm f32 throughput"));
  EXPECT_FALSE(matches("Gemm", "node1: gemm f32 throughput"));
  EXPECT_TRUE(matches("node?: *f32*", "node1: gemm f32 throughput"));
  EXPECT_FALSE(matches("gemm*", "node1: gemm f32 throughput"));
  EXPECT_TRUE(matches("*a*b", "xaxbxab"));
  EXPECT_FALSE(matches("*a*b?", "xaxbxab"));
}

TEST(Dates, AreDaysAndNothingElse) {
  EXPECT_EQ(date_text(first_night), "2024-10-04");
  EXPECT_EQ(parse_date("2024-10-04", "x"), first_night);
  for (const char* text : {"2024-02-30", "24-10-04", "2024-10-04T00:00:00Z", "", "tomorrow"})
    EXPECT_THROW(parse_date(text, "x"), UsageError) << text;
}

TEST(TrackedSeries, SplitsSeriesByAFact) {
  Made made;
  for (int night = 0; night < 6; ++night) {
    made.run("node1", night, night == 0 ? store::Facts{} : store::Facts{{"power", night % 2 ? "full" : "saving"}});
    made.point(made.series("node1", "gemm/n=1"), 100 + night);
    made.point(made.series("node1", "gemm/n=2"), 200 + night);
  }
  EXPECT_EQ(split_by(made.contents, "", "p").series.size(), 2u);
  const std::vector<TrackedSeries> series = tracked_series(split_by(made.contents, "power", "p"));
  ASSERT_EQ(series.size(), 6u);  // "unknown", "full", "saving" of two cases
  EXPECT_EQ(series[0].name, "node1: gemm/n=1 throughput (power=unknown)");
  EXPECT_EQ(series[0].number, 1);
  EXPECT_EQ(series[2].name, "node1: gemm/n=1 throughput (power=full)");
  EXPECT_EQ(series[2].track.nights, (std::vector<Night>{first_night + 1, first_night + 3, first_night + 5}));
  EXPECT_NEAR(series[2].figure(series[2].track.values[1]), 103, 1e-9);
  EXPECT_EQ(series[4].track.nights.size(), 2u);
  for (const TrackedSeries& one : series) EXPECT_EQ(whole_of(one.number), one.title.starts_with("gemm/n=1") ? 1 : 2);
  EXPECT_THROW(split_by(made.contents, "powr", "p"), UsageError);
}

TEST(TrackedSeries, CountsKeepEveryDigitAndNought) {
  EXPECT_TRUE(store::is_count("instructions", "1"));
  EXPECT_TRUE(store::is_count("anything", "count"));
  EXPECT_TRUE(store::is_count("planned_memory", "B"));
  EXPECT_FALSE(store::is_count("time", "s"));
  store::SeriesIdentity count, time;
  count.metric = "allocations";
  for (const double figure : {1.0, 7.0, 123456789012.0, 98765432109876.0})
    EXPECT_EQ(store::figure_of(count, std::log(figure)), figure);
  EXPECT_EQ(store::figure_of(count, store::log_of_zero), 0);
  EXPECT_EQ(store::figure_of(time, std::log(2.5)), std::exp(std::log(2.5)));
}

}  // namespace
}  // namespace assay::history
