// What the detector says of made-up series whose changes are known.
#include "harness/history/detect/detector.h"
#include "harness/history/bytes.h"

#include "tests/unit/history/made_tracks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace assay::history {
namespace {

TEST(HistoryDetector, FindsAStep) {
  for (const double factor : {0.95, 1.05}) {
    const SeriesState state = state_of(Made(300).times(factor, 200));
    ASSERT_EQ(state.changes.size(), 1u);
    const Change& change = state.changes[0];
    EXPECT_EQ(change.stage, Stage::open);
    EXPECT_NEAR(change.first_after, night(200), 2);
    EXPECT_EQ(change.last_before, change.first_after - 1);
    ASSERT_TRUE(change.opened);
    EXPECT_GE(*change.opened, change.suspected);
    EXPECT_LE(*change.opened, night(213));
    EXPECT_FALSE(change.closed);
    EXPECT_NEAR(change.shift, std::log(factor), 0.01);
    EXPECT_LT(change.interval.low, std::log(factor));
    EXPECT_GT(change.interval.high, std::log(factor));
    EXPECT_THAT(state.regimes, testing::ElementsAre(night(0), change.first_after));
    double weights = 0;
    for (const Change::Gap& gap : change.gaps) weights += gap.weight;
    EXPECT_NEAR(weights, 1, 0.02);
  }
}

TEST(HistoryDetector, SaysNothingOfNoise) {
  std::vector<Track> tracks;
  for (std::uint64_t seed = 0; seed < 200; ++seed) tracks.push_back(Made(335, seed));
  const Analysis analysis = analyse(tracks, {}, {});
  for (const SeriesState& state : analysis.series) {
    EXPECT_EQ(alarms(state), 0u);
    EXPECT_FALSE(state.drift);
    EXPECT_FALSE(state.flaky);
    EXPECT_NEAR(state.sigma, 0.01, 0.004);
    EXPECT_NEAR(state.correlation, 0, 0.4);
  }
  const NightSummary& last = analysis.nights.back();
  EXPECT_EQ(last.tested, 200u);
  EXPECT_DOUBLE_EQ(last.threshold, 0.01 / 200);
  EXPECT_EQ(analysis.nights.front().tested, 0u);
}

TEST(HistoryDetector, ASmallStepNeverAlarms) {
  const Track track = Made(300).times(0.985, 150);
  const SeriesState state = state_of(track);
  ASSERT_EQ(state.changes.size(), 1u);
  EXPECT_EQ(state.changes[0].stage, Stage::small);
  EXPECT_EQ(alarms(state_of(track, of_300(0.005))), 1u);
}

TEST(HistoryDetector, ReplacedHardwareIsNoChange) {
  const SeriesState state = state_of(Made(300).times(0.9, 200).replaced(200));
  EXPECT_TRUE(state.changes.empty());
  EXPECT_THAT(state.regimes, testing::ElementsAre(night(0), night(200)));
  // The noise is inherited: a step soon afterwards is found.
  EXPECT_EQ(alarms(state_of(Made(300).times(0.9, 200).replaced(200).times(0.9, 215))), 1u);
}

TEST(HistoryDetector, MissingNightsAreNoChange) {
  EXPECT_EQ(alarms(state_of(Made(300).without(200, 210))), 0u);
  const SeriesState state = state_of(Made(300).times(0.9, 205).without(200, 210));
  ASSERT_EQ(state.changes.size(), 1u);
  EXPECT_EQ(state.changes[0].last_before, night(199));
  EXPECT_EQ(state.changes[0].first_after, night(210));
}

TEST(HistoryDetector, ThreeNightOutliersAreNoAlarm) {
  EXPECT_EQ(alarms(state_of(Made(300).times(0.8, 100, 103).times(0.7, 180, 183).times(1.3, 260, 263))), 0u);
}

TEST(HistoryDetector, TwoLevelsAreNoAlarm) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Rng coin(seed, "level");
    Made made(335, seed);
    for (std::size_t i = 0; i < 335; ++i) {
      if (coin.below(i, 3) == 0) made.times(0.95, i, i + 1);
    }
    EXPECT_EQ(alarms(state_of(made)), 0u);
  }
}

TEST(HistoryDetector, NamesASlowChangeADrift) {
  Made made(365);
  for (std::size_t i = 0; i < 365; ++i) made.times(1 - 0.05 * static_cast<double>(i) / 365, i, i + 1);
  const SeriesState state = state_of(made);
  ASSERT_TRUE(state.drift);
  EXPECT_NEAR(state.drift->shift, -0.042, 0.012);
  EXPECT_LT(state.drift->interval.high, 0);
  EXPECT_FALSE(state_of(Made(365).times(0.95, 100)).drift);
}

TEST(HistoryDetector, AStepThatGoesBackRecovers) {
  const Track track = Made(300).times(0.95, 200, 220);
  const SeriesState state = state_of(track);
  ASSERT_EQ(state.changes.size(), 1u);
  EXPECT_EQ(state.changes[0].stage, Stage::recovered);
  EXPECT_TRUE(state.changes[0].opened);
  ASSERT_TRUE(state.changes[0].closed);
  EXPECT_NEAR(*state.changes[0].closed, night(224), 6);
  EXPECT_THAT(state.regimes, testing::ElementsAre(night(0)));
  // It was open in between.
  EXPECT_EQ(state_of(cut_after(track, night(218))).changes.at(0).stage, Stage::open);
}

TEST(HistoryDetector, AfterAnExcursionAStepIsFoundAsSoonAsWithoutOne) {
  for (const std::size_t length : {8, 20, 40}) {
    const std::size_t back = 150 + length, at = back + 20;
    const Made away = Made(300).times(0.9, 150, back);
    const SeriesState with = state_of(Made(away).times(0.9, at)), without = state_of(Made(300).times(0.9, at));
    ASSERT_EQ(with.changes.size(), 2u) << length;
    EXPECT_EQ(with.changes[0].stage, Stage::recovered);
    EXPECT_EQ(with.changes[1].stage, Stage::open);
    EXPECT_EQ(with.changes[1].first_after, night(at));
    EXPECT_LE(*with.changes[1].opened, *without.changes.at(0).opened + 1) << length;
    EXPECT_NEAR(with.changes[1].shift, std::log(0.9), 0.01);
    // A night no further away than the excursion is none to confirm at once.
    EXPECT_EQ(state_of(cut_after(Made(away).times(0.91, at), night(at))).changes.size(), 1u) << length;
    EXPECT_EQ(state_of(cut_after(Made(away).times(0.7, at), night(at))).changes.size(), 2u) << length;
  }
}

TEST(HistoryDetector, AFlakySeriesNeedNotOutlastWhatIsLeftOut) {
  const SeriesState state = state_of(Made(300, 1, 0.04).times(0.6, 150, 180).times(0.6, 220));
  EXPECT_TRUE(state.flaky);
  ASSERT_FALSE(state.changes.empty());
  ASSERT_TRUE(state.changes.back().opened);
  EXPECT_EQ(state.changes.back().stage, Stage::open);
  EXPECT_LE(*state.changes.back().opened, night(234));
}

TEST(HistoryDetector, TwoRecoveriesAreFlaky) {
  EXPECT_FALSE(state_of(Made(230).times(0.95, 150, 158)).flaky);
  EXPECT_TRUE(state_of(Made(230).times(0.95, 150, 158).times(0.95, 190, 198)).flaky);
  EXPECT_FALSE(state_of(Made(335).times(0.95, 150, 158).times(0.95, 190, 198)).flaky);
}

TEST(HistoryDetector, AFlakySeriesMustOutlastWhatItDidBefore) {
  const Track track = Made(300).times(0.95, 150, 158).times(0.95, 190, 198).times(0.95, 240);
  const SeriesState state = state_of(track);
  ASSERT_FALSE(state.changes.empty());
  EXPECT_EQ(state.changes.back().stage, Stage::open);
  EXPECT_LE(*state.changes.front().opened, night(156));
  EXPECT_GT(*state.changes.back().opened, night(240 + 16 - 1));
}

TEST(HistoryDetector, SuspectsALargeStepTheSameNight) {
  const Track track = Made(300).times(0.7, 250, 251);
  const SeriesState state = state_of(cut_after(track, night(250)));
  ASSERT_EQ(state.changes.size(), 1u);
  const Change& change = state.changes[0];
  EXPECT_TRUE(change.same_night);
  EXPECT_EQ(change.stage, Stage::suspect);
  EXPECT_EQ(change.first_after, night(250));
  EXPECT_NEAR(change.shift, std::log(0.7), 0.04);
  EXPECT_TRUE(state_of(cut_after(track, night(251))).changes.empty());
  EXPECT_TRUE(state_of(cut_after(track, night(249))).changes.empty());
  EXPECT_TRUE(state_of(Made(300).times(0.7, 250)).changes.at(0).same_night);
}

TEST(HistoryDetector, SuspectsASecondLargeStepWhileTheFirstIsTested) {
  const SeriesState state = state_of(cut_after(Made(300).times(0.9, 230).times(0.8, 250), night(250)));
  ASSERT_EQ(state.changes.size(), 2u);
  EXPECT_TRUE(state.testing);
  EXPECT_TRUE(state.changes[1].same_night);
  EXPECT_EQ(state.changes[1].first_after, night(250));
  EXPECT_NEAR(state.changes[1].shift, std::log(0.8), 0.04);
}

TEST(HistoryDetector, ComparesNightsMeasuredApartWithTheRegimeInForce) {
  const auto compared = [](const Track& track, const std::vector<double>& nights) {
    return compare(track, state_of(track), nights, {}, 300);
  };
  const Track quiet = Made(200);
  const std::optional<Comparison> same = compared(quiet, {0.005, -0.01, 0.002}), one = compared(quiet, {-0.2}),
                                  three = compared(quiet, {-0.2, -0.21, -0.19});
  ASSERT_TRUE(same && one && three);
  EXPECT_GT(same->p, 0.01);
  EXPECT_FALSE(same->may_alarm || same->beyond);
  EXPECT_TRUE(one->may_alarm && one->beyond);
  EXPECT_LT(one->p, 1e-3);
  EXPECT_LT(three->p, 1e-6);
  EXPECT_NEAR(three->shift, -0.2, 0.01);
  EXPECT_LT(three->interval.low, -0.2);
  EXPECT_GT(three->interval.high, -0.2);
  // The regime in force counts, without its excursions.
  EXPECT_LT(compared(Made(200).times(0.8, 150), {0.0, 0.0, 0.0})->p, 1e-6);
  EXPECT_LT(compared(Made(200).times(0.8, 150, 180), {-0.2, -0.2, -0.2})->p, 1e-6);
  // Three nights are nothing new after two like them, on either side.
  for (const double factor : {0.8, 1.25}) {
    const std::optional<Comparison> seen = compared(Made(200).times(factor, 150, 152), {-0.2, -0.21, -0.19});
    EXPECT_LT(seen->p, 1e-3);
    EXPECT_FALSE(seen->may_alarm);
  }
  EXPECT_FALSE(compared(Made(14), {0.0}));
  EXPECT_FALSE(compared(quiet, {}));
}

TEST(HistoryDetector, FiguresThatNeverVaryAreNotJudgedByTheirLastDigit) {
  Track track = Made(200, 1, 0);
  for (std::size_t i = 150; i < 200; ++i) track.values[i] = 1e-7;
  EXPECT_TRUE(state_of(track).changes.empty());
  EXPECT_EQ(alarms(state_of(Made(200, 1, 0).times(0.95, 150))), 1u);
}

TEST(HistoryDetector, SaysWhatIsDetectable) {
  EXPECT_FALSE(state_of(Made(14)).detectable);
  const std::optional<double> quiet = state_of(Made(300, 1, 0.002)).detectable,
                              noisy = state_of(Made(300, 1, 0.02)).detectable;
  ASSERT_TRUE(quiet && noisy);
  EXPECT_NEAR(*noisy / *quiet, 10, 0.01);
  EXPECT_TRUE(state_of(Made(300, 1, 0.04)).flaky);
}

TEST(HistoryDetector, AGroupShowsWhatItsMembersHide) {
  std::vector<Track> tracks;
  Group group;
  for (std::size_t i = 0; i < 20; ++i) {
    tracks.push_back(Made(300, i).times(0.99, 250));
    group.members.push_back(i);
  }
  const Options options{.tolerance = 0.005};
  const Night soon = night(265);
  std::vector<Track> cut;
  for (const Track& track : tracks) cut.push_back(cut_after(track, soon));
  const Analysis analysis = analyse(cut, std::span(&group, 1), options);
  ASSERT_EQ(analysis.groups.size(), 1u);
  ASSERT_EQ(analysis.groups[0].changes.size(), 1u);
  EXPECT_EQ(analysis.groups[0].changes[0].stage, Stage::open);
  EXPECT_NEAR(analysis.groups[0].changes[0].shift, -0.01, 0.003);
  EXPECT_NEAR(analysis.groups[0].changes[0].first_after, night(250), 2);
  for (Track& track : tracks) track.replaced = {night(250)};
  EXPECT_TRUE(analyse(tracks, std::span(&group, 1), options).groups[0].changes.empty());
  // Four have no group series.
  group.members.resize(4);
  EXPECT_TRUE(analyse(tracks, std::span(&group, 1), options).groups[0].regimes.empty());
}

// Tracks with a bit of everything, and a group of all.
struct Everything {
  Everything() {
    for (std::uint64_t seed = 0; seed < 6; ++seed) tracks.push_back(Made(200, seed).times(0.98, 120));
    tracks.push_back(Made(200, 10).times(0.9, 100));
    tracks.push_back(Made(200, 11).times(0.93, 60, 75).times(0.93, 110, 140));
    tracks.push_back(Made(200, 12).without(90, 100).times(1.1, 130).replaced(60));
    tracks.push_back(Made(200, 13).times(0.97, 70, 78).times(0.97, 90, 97).times(0.97, 120, 127).times(0.6, 199));
    tracks.push_back(Made(200, 14).times(0.9, 140).without(0, 120));
    tracks.push_back(Made(200, 15).times(0.95, 60).replaced(64).times(0.95, 100).times(0.98, 108));
    tracks.push_back(Made(200, 16, 0.05));
    for (std::size_t i = 0; i < tracks.size(); ++i) group.members.push_back(i);
  }
  std::vector<Track> tracks;
  Group group;
};

TEST(HistoryDetector, NightAfterNightGivesWhatAllAtOnceGives) {
  const Everything all;
  const Options options{.tolerance = 0.01};
  Analysis nightly;
  for (std::size_t i = 0; i < 200; ++i) {
    std::vector<Track> tracks;
    for (const Track& track : all.tracks) tracks.push_back(cut_after(track, night(i)));
    // As a store would keep it.
    for (auto* states : {&nightly.series, &nightly.groups}) {
      for (SeriesState& state : *states) state = state_of_bytes(to_bytes(state));
    }
    nightly = analyse(tracks, std::span(&all.group, 1), options, std::move(nightly));
    if (i % 10 == 3 || i == 199) {
      ASSERT_EQ(bytes_of(nightly), bytes_of(analyse(tracks, std::span(&all.group, 1), options))) << "night " << i;
    }
  }
  std::size_t opened = 0;
  for (const SeriesState& state : nightly.series) opened += alarms(state);
  EXPECT_GE(opened, 8u);
  EXPECT_EQ(bytes_of(analyse(all.tracks, std::span(&all.group, 1), options, nightly)), bytes_of(nightly));
}

TEST(HistoryDetector, AnyNumberOfThreadsGivesTheSame) {
  const Everything all;
  const auto with = [&](unsigned threads) {
    return bytes_of(analyse(all.tracks, std::span(&all.group, 1), {.tolerance = 0.01, .threads = threads}));
  };
  EXPECT_EQ(with(1), with(3));
}

TEST(HistoryDetector, ASeriesThatComesLaterIsAnalysedFromItsStart) {
  const Track old = Made(200), late = Made(200, 2).times(0.9, 100);
  const std::vector<Track> first = {cut_after(old, night(198))}, second = {old, late};
  const Analysis analysis = analyse(second, {}, {}, analyse(first, {}, {}));
  ASSERT_EQ(analysis.series.size(), 2u);
  EXPECT_EQ(analysis.series[1].regimes.size(), 2u);
  EXPECT_EQ(analysis.nights.size(), 200u);
}

TEST(HistoryDetector, ReadsItsStatesBackAndRefusesDamagedOnes) {
  const SeriesState state = state_of(Made(250).times(0.95, 100).times(0.9, 240));
  const std::string bytes = to_bytes(state);
  EXPECT_EQ(to_bytes(state_of_bytes(bytes)), bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_THROW(state_of_bytes(std::string_view(bytes).substr(0, i)), DataError);
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    EXPECT_THROW(state_of_bytes(damaged), DataError) << "byte " << i;
  }
  EXPECT_THROW(state_of_bytes(bytes + "x"), DataError);
}

TEST(HistoryDetector, RefusesSeriesOutOfOrder) {
  Track track = Made(20);
  std::swap(track.nights[3], track.nights[4]);
  EXPECT_THROW(state_of(track), Error);
  track = Made(20);
  track.values[7] = std::numeric_limits<double>::infinity();
  EXPECT_THROW(state_of(track), Error);
}

}  // namespace
}  // namespace assay::history
