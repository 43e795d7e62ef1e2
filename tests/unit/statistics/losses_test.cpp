// Comparing equal members many times: how often one is wrongly called slow, and which losses are found.
#include "harness/statistics/losses.h"

#include "harness/core/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace assay {
namespace {

using Members = std::set<std::size_t>;

// A fleet with normal noise, of which some members lose a fraction in their first case or in all.
struct Fleet {
  std::size_t members = 64, cases = 30;
  double sigma = 0.025, correlation = 0, in_one = 0, in_all = 0;
  std::size_t slow = 0;

  std::vector<FleetCase> draw(std::uint64_t seed) const {
    const Rng rng(seed, "fleet");
    std::vector<FleetCase> drawn(cases);
    for (std::size_t c = 0; c < cases; ++c) {
      drawn[c].margin = -std::log(0.95), drawn[c].together = true;
      for (std::size_t m = 0; m < members; ++m) {
        const double noise =
            std::sqrt(correlation) * rng.normal(m) + std::sqrt(1 - correlation) * rng.normal((c + 1) * members + m);
        const double loss = m < slow ? std::log(1 - in_all) + (c == 0 ? std::log(1 - in_one) : 0) : 0;
        drawn[c].speeds.push_back(sigma * noise + loss);
      }
    }
    return drawn;
  }
};

Members slow_in(const std::vector<FleetCase>& cases, const FleetLosses& losses) {
  Members slow;
  for (std::size_t m = 0; m < losses.together.size(); ++m) {
    bool is = losses.together[m] > losses.of_together.limit;
    for (std::size_t c = 0; c < cases.size(); ++c)
      is = is || losses.cases[c].center - cases[c].speeds[m] > losses.cases[c].limit;
    if (is) slow.insert(m);
  }
  return slow;
}

struct Counts {
  int named = 0, wrong = 0, grouped = 0;  // draws: all slow ones and no other; any other; the slow ones are a group
};

Counts draws(const Fleet& fleet, int count = 100) {
  Counts counts;
  Members bad;
  for (std::size_t m = 0; m < fleet.slow; ++m) bad.insert(m);
  for (int i = 0; i < count; ++i) {
    const auto cases = fleet.draw(static_cast<std::uint64_t>(i));
    const FleetLosses losses = fleet_losses(cases, 0.01);
    const Members slow = slow_in(cases, losses);
    counts.named += slow == bad ? 1 : 0;
    counts.wrong += std::ranges::includes(bad, slow) ? 0 : 1;
    const auto& group = losses.of_together.slower_group;
    counts.grouped += !bad.empty() && Members(group.begin(), group.end()) == bad ? 1 : 0;
  }
  return counts;
}

TEST(Losses, SixtyFourEqualHostsFailOnceInAHundredAcceptancesAtMost) {
  EXPECT_LE(draws({}, 1000).wrong, 10);
  // Also if what a host does well it does well in all cases.
  EXPECT_LE(draws({.correlation = 0.5}).wrong, 2);
}

TEST(Losses, AHostThatLosesALittleInAllCasesOrMuchInOneIsNamed) {
  EXPECT_GE(draws({.in_all = 0.05, .slow = 1}).named, 95);
  EXPECT_GE(draws({.in_one = 0.15, .slow = 1}).named, 95);
  EXPECT_GE(draws({.in_all = 0.10, .slow = 16}).named, 95);  // they do not mask each other
}

TEST(Losses, SmallFleetsNameNoEqualHostAndFindLargeLosses) {
  for (const std::size_t members : {3, 4, 5, 6, 8}) {
    EXPECT_LE(draws({.members = members}).wrong, 1) << members;
    EXPECT_GE(draws({.members = members, .in_all = 0.15, .slow = 1}).named, 95) << members;
    EXPECT_GE(draws({.members = members, .cases = 1, .in_one = 0.4, .slow = 1}).named, 95) << members;
  }
}

TEST(Losses, OfTwoHalvesNeitherIsNamedAndTheSlowerOneIsAGroup) {
  for (const std::size_t members : {6, 8, 64}) {
    const Counts counts = draws({.members = members, .in_all = 0.15, .slow = members / 2}, 20);
    EXPECT_EQ(counts.wrong, 0) << members;
    EXPECT_GE(counts.grouped, 19) << members;
  }
  // In one of several cases, too.
  const auto cases = Fleet{.in_one = 0.3, .slow = 32}.draw(1);
  const FleetLosses losses = fleet_losses(cases, 0.01);
  EXPECT_EQ(losses.cases[0].slower_group.size(), 32u);
  EXPECT_TRUE(losses.cases[1].slower_group.empty());
  EXPECT_TRUE(losses.of_together.slower_group.empty());
}

TEST(Losses, ALossWithinTheMarginIsNeverSlow) {
  std::vector<FleetCase> cases(2);
  for (FleetCase& one : cases) one = {std::vector<double>(20, 0.0), -std::log(0.95), true};
  cases[0].speeds[7] = -0.04;
  const FleetLosses losses = fleet_losses(cases, 0.01);
  EXPECT_TRUE(slow_in(cases, losses).empty());
  EXPECT_GE(losses.cases[0].limit, cases[0].margin);
  EXPECT_EQ(losses.comparisons, 60u);  // twice 20, and each host's cases together
}

TEST(Losses, WhatIsSaidToBeFoundIsFoundNineTimesInTen) {
  const Fleet fleet{.members = 64, .cases = 8};
  int found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto cases = fleet.draw(seed);
    cases[0].speeds[0] -= fleet_losses(cases, 0.01).cases[0].found;
    found += slow_in(cases, fleet_losses(cases, 0.01)).contains(0) ? 1 : 0;
  }
  EXPECT_GE(found, 174);
  EXPECT_LE(found, 188);
}

TEST(Losses, TwoMembersAndAbsentFiguresAreNotCompared) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<FleetCase> cases = {{{1, 0, none}, 0.05, true}, {{0, none, none}, 0.05, true}};
  const FleetLosses losses = fleet_losses(cases, 0.01);
  EXPECT_EQ(losses.comparisons, 0u);
  EXPECT_TRUE(std::isinf(losses.cases[0].limit));
  EXPECT_TRUE(fleet_losses({}, 0.01).cases.empty());
}

TEST(Losses, TheSpreadOfFewValuesIsThatOfAllButTheSlowest) {
  const std::vector<double> four = {-9, 0.1, 0, -0.1};
  EXPECT_NEAR(robust_spread(four).sigma, 0.1 / std::sqrt(0.63), 1e-9);
  EXPECT_NEAR(robust_spread(four).center, -0.05, 1e-9);
  std::vector<double> many = {-9, -8, 7};
  for (int i = 0; i < 17; ++i) many.push_back(0.01 * i);
  EXPECT_NEAR(robust_spread(many).freedom, 0.8 * 16, 1e-9);
}

}  // namespace
}  // namespace assay
