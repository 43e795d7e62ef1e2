// The analysis is the same whether it goes on from what a store keeps or from nothing.
#include "harness/history/series/kept.h"
#include "reports/history/document.h"
#include "tests/unit/history/made.h"

#include <gtest/gtest.h>

namespace assay::history {
namespace {

using test::first_night;
using test::Made;
using test::noise;

// Two machines of six cases; from night 40 on three of them are a fifth slower on the first. The second machine starts
// on night 20, and one case is new on night 50.
Made nights_until(int last) {
  Made made;
  for (int night = 0; night < last; ++night)
    for (const std::string machine : {"a", "b"}) {
      if (machine == "b" && night < 20) continue;
      made.run(machine, night);
      for (int one = 0; one < 7; ++one) {
        if (one == 6 && night < 50) continue;
        const double step = machine == "a" && one < 3 && night >= 40 ? -0.22 : 0;
        made.point(made.series(machine, "gemm/n=" + std::to_string(one)),
                   1e9 * std::exp(step + noise(one + (machine == "a" ? 0 : 10), night)));
      }
    }
  return made;
}

Json result(const store::Contents& contents, std::string& kept) {
  History history;
  history.contents = contents;
  history.series = tracked_series(contents);
  history.groups = tracked_groups(history.series);
  history.analysis = analyse_from(kept, history.series, history.groups, history.options);
  return history_json(judged(std::move(history)));
}

TEST(KeptAnalysis, NightByNightGivesWhatAllAtOnceGives) {
  std::string kept, none;
  Json last;
  for (int night = 1; night <= 60; ++night) last = result(nights_until(night).contents, kept);
  EXPECT_EQ(last, result(nights_until(60).contents, none));
  ASSERT_EQ(last["events"].size(), 1u) << last.dump(1);
  EXPECT_EQ(last["events"][0]["kind"], "slower");
}

TEST(KeptAnalysis, IsUsedAndNotTakenForOtherValuesOrOptions) {
  std::string kept;
  const auto until = [&](int night) {
    const auto made = nights_until(night);
    const auto series = tracked_series(made.contents);
    return analyse_from(kept, series, tracked_groups(series), {}).nights.size();
  };
  EXPECT_EQ(until(30), 30u);
  const std::string before = kept;
  EXPECT_EQ(until(30), 30u);
  EXPECT_EQ(kept, before) << "the same nights";
  // Were it not used, the summaries of its nights would be made again.
  Made other = nights_until(30);
  other.contents.series[0].points[3].log += 0.5;
  const auto changed = tracked_series(other.contents);
  std::string again = kept, from_nothing;
  analyse_from(again, changed, tracked_groups(changed), {});
  analyse_from(from_nothing, changed, tracked_groups(changed), {});
  EXPECT_EQ(again, from_nothing);
  EXPECT_NE(again, before);
  const auto same = tracked_series(nights_until(30).contents);
  Options strict;
  strict.tolerance = 0.1;
  again = kept;
  analyse_from(again, same, tracked_groups(same), strict);
  EXPECT_NE(again, before);
}

TEST(KeptAnalysis, SurvivesBytesThatAreNone) {
  const auto series = tracked_series(nights_until(30).contents);
  const auto groups = tracked_groups(series);
  std::string whole;
  analyse_from(whole, series, groups, {});
  for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 97) {
    std::string cut = whole.substr(0, length);
    analyse_from(cut, series, groups, {});
    EXPECT_EQ(cut, whole) << length;
  }
}

}  // namespace
}  // namespace assay::history
