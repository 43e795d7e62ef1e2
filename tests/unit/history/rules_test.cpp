// The detector's rules beside the two keys: large steps, steps not found yet, drifts, known states, suspects, counts.
#include "harness/history/detect/counts.h"
#include "harness/history/detect/large_step.h"
#include "harness/history/detect/noise.h"
#include "tests/unit/history/made_tracks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace assay::history {
namespace {

TEST(HistoryRules, FindsALargeStepOfAYoungSeriesInFourNights) {
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

TEST(HistoryRules, TheRuleForLargeStepsNeedsAllNightsBeyondTheRange) {
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

TEST(HistoryRules, AStepThatIsNotFoundYetIsNoNoise) {
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

TEST(HistoryRules, ASlowChangeIsNoStep) {
  std::size_t opened = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Made made(335, seed);
    for (std::size_t i = 0; i < 335; ++i) made.times(std::exp(-0.08 * static_cast<double>(i) / 335), i, i + 1);
    opened += alarms(state_of(made));
  }
  EXPECT_LE(opened, 1u);
}

TEST(HistoryRules, AStateThatASeriesCameBackFromTwiceIsKnown) {
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

TEST(HistoryRules, CountsStaysAtALevel) {
  std::vector<double> values(60, 0.0);
  for (const std::size_t first : {10, 30})
    for (std::size_t i = 0; i < 5; ++i) values[first + i] = 0.1;
  values[32] = 0;                 // one night elsewhere does not end a stay
  values[50] = values[51] = 0.1;  // two nights are none
  const Visits visits = visits_in(values, 0.1, 0.1, 3);
  EXPECT_EQ(visits.count, 2u);
  EXPECT_EQ(visits.longest, 5u);
  EXPECT_EQ(visits_in(values, 0.1, 0.1, 5).count, 1u);
  EXPECT_EQ(visits_in(values, -0.1, -0.1, 3).count, 0u);
  EXPECT_EQ(visits_in(values, 0.3, 0.3, 3).count, 0u);
}

TEST(HistoryRules, SuspectsTheTwentyLargestOfANight) {
  std::vector<Track> tracks;
  for (std::uint64_t seed = 0; seed < 30; ++seed)
    tracks.push_back(Made(100, seed, 0.002).times(0.9 - 0.01 * static_cast<double>(seed), 99));
  const Analysis analysis = analyse(tracks, {}, {});
  for (std::size_t i = 0; i < tracks.size(); ++i) EXPECT_EQ(analysis.series[i].changes.size(), i < 10 ? 0u : 1u) << i;
}

TEST(HistoryRules, AYoungSeriesOfASmallRangeIsNoSuspect) {
  Track track = Made(16);
  for (std::size_t i = 0; i < 15; ++i) track.values[i] = i % 2 == 0 ? 0.01 : -0.01;
  track.values[15] = -0.03;  // beyond all, yet only two deviations away
  EXPECT_TRUE(state_of(track).changes.empty());
  track.values[15] = -0.08;
  EXPECT_EQ(state_of(track).changes.size(), 1u);
}

Track counts(const std::vector<double>& figures) {
  Track track;
  track.count = true;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    track.nights.push_back(night(i));
    track.values.push_back(figures[i] > 0 ? -std::log(figures[i]) : 1000);  // fewer is better
  }
  return track;
}

TEST(HistoryRules, ACountIsJudgedEachNight) {
  std::vector<double> figures(30, 1e6);
  for (std::size_t i = 20; i < 30; ++i) figures[i] = 1.002e6;
  const SeriesState state = state_of(cut_after(counts(figures), night(20)));  // tolerance of 2 %, which is for times
  ASSERT_EQ(state.changes.size(), 1u);
  EXPECT_EQ(state.changes[0].stage, Stage::open);
  EXPECT_EQ(state.changes[0].opened, night(20));
  EXPECT_EQ(state.changes[0].last_before, night(19));
  EXPECT_EQ(state.changes[0].first_after, night(20));
  EXPECT_NEAR(state.changes[0].shift, -0.002, 1e-5);
  EXPECT_EQ(state_of(counts(figures)).changes.size(), 1u);
  figures.assign(30, 1e6);
  figures[20] = 1.0005e6;  // below the tolerance
  EXPECT_TRUE(state_of(counts(figures)).changes.empty());
  // Many small steps in one direction add up.
  for (std::size_t i = 0; i < 30; ++i) figures[i] = 1e6 * (1 + 0.0001 * static_cast<double>(i));
  EXPECT_GE(alarms(state_of(counts(figures))), 1u);
  figures.assign(30, 1e6);
  figures[10] = 2e6;
  const SeriesState back = state_of(counts(figures));
  ASSERT_EQ(back.changes.size(), 1u);
  EXPECT_EQ(back.changes[0].stage, Stage::recovered);
  EXPECT_EQ(back.changes[0].closed, night(11));
}

TEST(HistoryRules, FiveAfterNoughtIsAChange) {
  std::vector<double> figures(160, 0.0);
  for (std::size_t i = 150; i < 160; ++i) figures[i] = 5;
  const SeriesState state = state_of(counts(figures));
  ASSERT_EQ(state.changes.size(), 1u);
  EXPECT_EQ(state.changes[0].opened, night(150));
  EXPECT_LT(state.changes[0].shift, 0);
}

TEST(HistoryRules, WhatVariesByItselfIsNoCount) {
  const Track noisy = Made(60);
  Track called = noisy;
  called.count = true;
  EXPECT_TRUE(varies(called));
  EXPECT_EQ(to_bytes(state_of(called)), to_bytes(state_of(noisy)));
  EXPECT_FALSE(varies(counts(std::vector<double>(60, 3.0))));
}

TEST(HistoryRules, CountsNightAfterNightGiveWhatAllAtOnceGives) {
  std::vector<double> figures(60, 100);
  figures[3] = 101;
  for (std::size_t i = 20; i < 30; ++i) figures[i] = 120;
  for (std::size_t i = 40; i < 60; ++i) figures[i] = 0;
  const Track all = counts(figures);
  Analysis nightly;
  for (std::size_t i = 0; i < 60; ++i) {
    const Track track = cut_after(all, night(i));
    nightly = analyse(std::span(&track, 1), {}, {}, std::move(nightly));
    ASSERT_EQ(bytes_of(nightly), bytes_of(analyse(std::span(&track, 1), {}, {}))) << "night " << i;
  }
}

}  // namespace
}  // namespace assay::history
