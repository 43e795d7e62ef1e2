// What is blamed for an event.
#include "harness/history/blame/blame.h"
#include "tests/unit/history/made.h"

#include <gtest/gtest.h>

namespace assay::history {
namespace {

using test::first_night;
using test::Made;

constexpr int gap_night = 10;  // first night after it

// Machines with a gemm each and nights 0 to 15; facts by machine and night.
Made machines(const std::vector<std::string>& names, const std::function<store::Facts(int, int)>& facts) {
  Made made;
  for (int night = 0; night <= 15; ++night)
    for (std::size_t m = 0; m < names.size(); ++m) {
      made.run(names[m], night, facts(static_cast<int>(m), night));
      made.point(made.series(names[m], "gemm"), 10);
    }
  return made;
}

Blame blame_of(const Made& made, std::vector<std::size_t> slowed, std::vector<SeriesState> states = {}) {
  const auto series = tracked_series(made.contents);
  states.resize(series.size());
  return blame({first_night + gap_night - 1, first_night + gap_night, true, std::move(slowed)}, made.contents, series,
               states);
}

TEST(Fisher, IsTheHypergeometricTail) {
  EXPECT_DOUBLE_EQ(fisher(3, 2, 2, 2), 1.0 / 3);
  EXPECT_NEAR(fisher(10, 3, 3, 3), 1.0 / 120, 1e-12);
  EXPECT_NEAR(fisher(10, 5, 5, 4), 26.0 / 252, 1e-12);
  EXPECT_EQ(fisher(4, 4, 4, 4), 1);
}

TEST(Blame, PutsLastingUsersOfTheCpusFirst) {
  const auto made = [](int last_night, const std::string& usual = "none") {
    return machines({"a", "b"}, [=](int machine, int night) {
      const bool busy = machine == 0 && night >= gap_night && night <= last_night;
      return store::Facts{{"gpu.driver", night >= gap_night && machine == 0 ? "581" : "580"},
                          {"outside_cpu", busy ? "burner (50 %)" : usual}};
    });
  };
  const Blame lasting = blame_of(made(15), {0});
  ASSERT_EQ(lasting.causes.size(), 2u);
  EXPECT_EQ(lasting.causes[0].fact, "outside_cpu");
  EXPECT_NE(lasting.sentence.find("outside_cpu (none -> burner (50 %)): took CPU time"), std::string::npos)
      << lasting.sentence;
  const Blame more = blame_of(made(15, "burner (6.25 %)"), {0});
  ASSERT_EQ(more.causes.size(), 2u);
  EXPECT_EQ(more.causes[0].fact, "outside_cpu") << "the same program takes more than it usually did";
  const Blame once = blame_of(made(gap_night), {0});
  ASSERT_EQ(once.causes.size(), 2u);
  EXPECT_NE(once.sentence.find("cannot be told apart"), std::string::npos) << once.sentence;
  const Blame before = blame_of(made(15, "burner (25 %)"), {0});
  ASSERT_EQ(before.causes.size(), 2u);
  EXPECT_NE(before.sentence.find("cannot be told apart"), std::string::npos) << before.sentence;
}

TEST(Blame, PutsTheDriverFirstAndExoneratesWhatChangedEverywhere) {
  const auto made = machines({"a", "b", "c"}, [](int machine, int night) {
    return store::Facts{{"gpu.driver", night >= gap_night && machine < 2 ? "581" : "580"},
                        {"kernel", night >= gap_night ? "6.2" : "6.1"},
                        {"gpu.power_limit", "700"},
                        {"gpu.clock_mhz", night >= gap_night && machine < 2 ? "1800" : "1980"}};
  });
  const Blame blame = blame_of(made, {0, 1});
  ASSERT_EQ(blame.causes.size(), 1u);
  EXPECT_EQ(blame.causes[0].fact, "gpu.driver");
  EXPECT_EQ(blame.causes[0].before, "580");
  EXPECT_EQ(blame.causes[0].after, "581");
  EXPECT_DOUBLE_EQ(blame.causes[0].p, 1.0 / 3);
  ASSERT_EQ(blame.exonerated.size(), 1u);
  EXPECT_EQ(blame.exonerated[0].fact, "kernel");
  EXPECT_EQ(blame.exonerated[0].exonerated_by, std::vector<std::string>{"c"});
  ASSERT_EQ(blame.mediators.size(), 1u) << "a clock is an effect; its limit did not change";
  EXPECT_EQ(blame.mediators[0].fact, "gpu.clock_mhz");
  EXPECT_NE(blame.sentence.find("gpu.driver (580 -> 581)"), std::string::npos) << blame.sentence;
}

TEST(Blame, ExoneratesAFactThatChangedEarlierElsewhere) {
  const auto facts = [](int machine, int night) {
    return store::Facts{{"driver", night >= (machine == 0 ? gap_night : 4) ? "2" : "1"},
                        {"kernel", night >= gap_night && machine == 0 ? "2" : "1"}};
  };
  const auto made = machines({"a", "b"}, facts);
  const Blame blame = blame_of(made, {0});
  ASSERT_EQ(blame.causes.size(), 1u);
  EXPECT_EQ(blame.causes[0].fact, "kernel");
  ASSERT_EQ(blame.exonerated.size(), 1u);
  EXPECT_EQ(blame.exonerated[0].fact, "driver");
  // Had it slowed there too, both would point at the driver.
  std::vector<SeriesState> states(2);
  Change slower;
  slower.shift = -0.1;
  slower.last_before = first_night + 3;
  slower.first_after = first_night + 4;
  states[1].changes.push_back(slower);
  const Blame again = blame_of(made, {0}, states);
  ASSERT_EQ(again.causes.size(), 2u);
  EXPECT_TRUE(again.exonerated.empty());
}

TEST(Blame, SaysWhatOneMachineCannotTellApart) {
  const auto made = machines({"a"}, [](int, int night) {
    const std::string now = night >= gap_night ? "2" : "1";
    return store::Facts{{"driver", now}, {"kernel", now}, {"bios", now}, {"cpu", "same"}};
  });
  const Blame blame = blame_of(made, {0});
  EXPECT_EQ(blame.causes.size(), 3u);
  EXPECT_NE(blame.sentence.find("these 3 cannot be told apart"), std::string::npos) << blame.sentence;
}

TEST(Blame, SaysThatNothingChanged) {
  const auto made = machines({"a"}, [](int, int) { return store::Facts{{"driver", "1"}}; });
  const Blame blame = blame_of(made, {0});
  EXPECT_TRUE(blame.causes.empty());
  EXPECT_EQ(blame.sentence, "no recorded fact changed there");
}

TEST(Blame, FindsTheChoiceThatOnlyTheSlowedSeriesMade) {
  Made made;
  for (int night = 0; night <= 15; ++night) {
    made.run("a", night, {{"kernel", night >= gap_night ? "6.2" : "6.1"}}, night >= gap_night ? "bbb" : "aaa");
    for (int one = 0; one < 8; ++one)
      made.point(made.series("a", "gemm/n=" + std::to_string(one)), 10,
                 {{"isa", night >= gap_night && one < 3 ? "avx2" : "avx512"}});
  }
  const Blame blame = blame_of(made, {0, 1, 2});
  ASSERT_EQ(blame.causes.size(), 3u);
  EXPECT_EQ(blame.causes[0].fact, "choice.isa");
  EXPECT_EQ(blame.causes[0].after, "avx2");
  EXPECT_NEAR(blame.causes[0].p, 1.0 / 56, 1e-12);
  EXPECT_EQ(blame.causes[1].p, 1);
}

}  // namespace
}  // namespace assay::history
