// What the detector says of made-up series whose changes are known.
#include "harness/history/detect/detector.h"
#include "harness/history/bytes.h"
#include "harness/history/detect/large_step.h"
#include "harness/history/detect/noise.h"

#include "harness/core/rng.h"

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

constexpr Night first_night = 20000;

Night night(std::size_t i) { return first_night + static_cast<Night>(i); }

// A series of independent normal noise of 1 %.
class Made {
 public:
  explicit Made(std::size_t nights, std::uint64_t seed = 1, double sigma = 0.01) : random_(seed, "detector test") {
    for (std::size_t i = 0; i < nights; ++i) {
      track_.nights.push_back(night(i));
      track_.values.push_back(sigma * random_.normal(i));
    }
  }
  // Multiplies the figures of nights first, ... last - 1.
  Made& times(double factor, std::size_t first, std::size_t last = std::numeric_limits<std::size_t>::max()) {
    for (std::size_t i = first; i < std::min(last, track_.values.size()); ++i) track_.values[i] += std::log(factor);
    return *this;
  }
  Made& without(std::size_t first, std::size_t last) {
    const auto cut = [&](auto& list) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(first), list.begin() + static_cast<std::ptrdiff_t>(last));
    };
    cut(track_.nights);
    cut(track_.values);
    return *this;
  }
  Made& replaced(std::size_t at) {
    track_.replaced.push_back(night(at));
    return *this;
  }
  operator Track() const { return track_; }

 private:
  Rng random_;
  Track track_;
};

// One series is judged as if it were one of 300.
Options of_300(double tolerance = 0.02) { return {.false_alarms = 0.01 / 300, .tolerance = tolerance}; }

SeriesState state_of(const Track& track, const Options& options = of_300()) {
  return analyse(std::span(&track, 1), {}, options).series.at(0);
}

std::size_t alarms(const SeriesState& state) {
  return static_cast<std::size_t>(
      std::count_if(state.changes.begin(), state.changes.end(), [](const Change& c) { return c.opened.has_value(); }));
}

Track cut_after(Track track, Night last) {
  while (!track.nights.empty() && track.nights.back() > last) {
    track.nights.pop_back();
    track.values.pop_back();
  }
  return track;
}

std::string bytes_of(const Analysis& analysis) {
  std::string bytes;
  for (const auto* states : {&analysis.series, &analysis.groups}) {
    for (const SeriesState& state : *states) bytes += to_bytes(state);
  }
  for (const NightSummary& s : analysis.nights)
    bytes += std::to_string(s.night) + " " + std::to_string(s.tested) + " " + std::to_string(s.opened) + " " +
             std::to_string(s.threshold) + "\n";
  return bytes;
}

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

TEST(HistoryDetector, SuspectsTheTwentyLargestOfANight) {
  std::vector<Track> tracks;
  for (std::uint64_t seed = 0; seed < 30; ++seed)
    tracks.push_back(Made(100, seed, 0.002).times(0.9 - 0.01 * static_cast<double>(seed), 99));
  const Analysis analysis = analyse(tracks, {}, {});
  for (std::size_t i = 0; i < tracks.size(); ++i) EXPECT_EQ(analysis.series[i].changes.size(), i < 10 ? 0u : 1u) << i;
}

TEST(HistoryDetector, AYoungSeriesOfASmallRangeIsNoSuspect) {
  Track track = Made(16);
  for (std::size_t i = 0; i < 15; ++i) track.values[i] = i % 2 == 0 ? 0.01 : -0.01;
  track.values[15] = -0.03;  // beyond all, yet only two deviations away
  EXPECT_TRUE(state_of(track).changes.empty());
  track.values[15] = -0.08;
  EXPECT_EQ(state_of(track).changes.size(), 1u);
}

TEST(HistoryDetector, FindsALargeStepOfAYoungSeriesInFourNights) {
  const Options of_7{.false_alarms = 0.01 / 7};
  std::size_t found = 0, again = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Track once = Made(34, seed, 0.04).times(0.8, 30);
    found += alarms(state_of(once, of_7));
    again += alarms(state_of(Made(60, seed, 0.04).times(0.8, 30).times(0.8, 56), of_7)) == 2 ? 1 : 0;
    EXPECT_EQ(alarms(state_of(cut_after(once, night(32)), of_7)), 0u);
    // Ten thousand series need more nights.
    EXPECT_EQ(alarms(state_of(once, {.false_alarms = 0.01 / 10000})), 0u);
  }
  EXPECT_GE(found, 18u);
  EXPECT_GE(again, 18u);
}

TEST(HistoryDetector, TheRuleForLargeStepsNeedsAllNightsBeyondTheRange) {
  std::vector<double> before;
  for (int i = 0; i < 30; ++i) before.push_back(0.01 * (i % 3 - 1));
  const std::vector<double> far = {0.06, 0.07, 0.08, 0.06}, one_back = {0.06, 0.07, 0.0, 0.06}, near(4, 0.015);
  const double p = large_step_p(far, before);
  EXPECT_GT(p, 0);
  EXPECT_LT(p, 1e-3);
  EXPECT_EQ(large_step_p(one_back, before), 1);
  EXPECT_EQ(large_step_p(near, before), 1);                          // within 2.5 deviations
  EXPECT_EQ(large_step_p(std::span(far).first(3), before), 1);       // too few nights
  EXPECT_EQ(large_step_p(far, std::span(before).first(14)), 1);      // or nights before
  EXPECT_GT(large_step_p(far, std::span(before).first(15)), p);      // whose range may be small by chance
  EXPECT_LT(large_step_p(std::vector<double>(8, 0.06), before), p);  // more nights say more
  const std::vector<double> down = {-0.06, -0.07, -0.08, -0.06};
  EXPECT_DOUBLE_EQ(large_step_p(down, before), p);
  before[20] = 0.5;  // an outlier
  EXPECT_NEAR(large_step_p(far, before), p, 1e-9);
  before[21] = 0.5;
  EXPECT_EQ(large_step_p(far, before), 1);
}

TEST(HistoryDetector, AStepThatIsNotFoundYetIsNoNoise) {
  Made made(40);
  const Track clean = made, stepped = made.times(1.1, 25);
  const Track noise = Made(40);
  EXPECT_EQ(step_within(stepped.values, 4), 25u);
  EXPECT_EQ(step_within(clean.values, 4), 0u);
  EXPECT_EQ(step_within(std::span(stepped.values).first(26), 4), 0u);  // one value is no side
  // An outlier is no step.
  Track one = noise;
  one.values[20] = 3;
  EXPECT_EQ(step_within(one.values, 4), 0u);
}

TEST(HistoryDetector, ASlowChangeIsNoStep) {
  std::size_t opened = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Made made(335, seed);
    for (std::size_t i = 0; i < 335; ++i) made.times(std::exp(-0.08 * static_cast<double>(i) / 335), i, i + 1);
    opened += alarms(state_of(made));
  }
  EXPECT_LE(opened, 1u);
}

TEST(HistoryDetector, AStateThatASeriesCameBackFromTwiceIsKnown) {
  const Made two = Made(335).times(0.9, 60, 70).times(0.9, 100, 112);
  EXPECT_EQ(alarms(state_of(two)), 2u);  // while it is learned
  // A third stay, twice as long, and the return are no events; nor is one after months.
  EXPECT_EQ(alarms(state_of(Made(two).times(0.9, 150, 175))), 2u);
  EXPECT_EQ(alarms(state_of(Made(two).times(0.9, 300, 312))), 2u);
  // Another level is; so is the same one, if it lasts longer than a state may.
  EXPECT_EQ(alarms(state_of(Made(two).times(0.7, 150))), 3u);
  const SeriesState state = state_of(Made(two).times(0.9, 150));
  EXPECT_EQ(alarms(state), 3u);
  EXPECT_GE(*state.changes.back().opened, night(150 + 45));
}

TEST(HistoryDetector, CountsStaysAtALevel) {
  std::vector<double> values(60, 0.0);
  for (const std::size_t first : {10, 30})
    for (std::size_t i = 0; i < 5; ++i) values[first + i] = 0.1;
  values[32] = 0;                 // one night elsewhere does not end a stay
  values[50] = values[51] = 0.1;  // two nights are none
  const Visits visits = visits_in(values, 0.1, 0.1);
  EXPECT_EQ(visits.count, 2u);
  EXPECT_EQ(visits.longest, 5u);
  EXPECT_EQ(visits_in(values, -0.1, -0.1).count, 0u);
  EXPECT_EQ(visits_in(values, 0.3, 0.3).count, 0u);
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
