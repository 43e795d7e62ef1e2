// op=groups over ranks that are threads: each counts as a host.
#include "suites/collective/groups.h"

#include "tests/unit/collective/over_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace assay::collective {
namespace {

using testing::HasSubstr;

test::Outcome groups_over_threads(int ranks, std::map<std::string, ParamValue> changes,
                                  const std::set<Fault>& faults = {}) {
  changes["op"] = std::string("groups");
  return over_threads(ranks, changes, faults);
}

TEST(GroupsCase, EveryGroupOfEveryGroupingIsMeasured) {
  const test::Outcome out = groups_over_threads(7, {{"bytes", std::int64_t{65536}}});
  ASSERT_FALSE(out.skipped) << *out.skipped;
  EXPECT_TRUE(out.check("wrong_elements").passed);
  EXPECT_TRUE(out.check("changed_inputs").passed);
  ASSERT_EQ(out.groups.size(), 18u);  // six times three; one rank waits
  std::map<int, std::set<int>> ranks;
  double slowest = out.groups.front().busbw;
  for (const RankGroup& group : out.groups) {
    EXPECT_EQ(group.ranks.size(), 2u);
    EXPECT_GT(group.busbw, 0);
    ranks[group.grouping].insert(group.ranks.begin(), group.ranks.end());
    slowest = std::min(slowest, group.busbw);
  }
  for (const auto& [grouping, members] : ranks) EXPECT_EQ(members.size(), 6u) << grouping;
  EXPECT_EQ(out.metric("slowest_group_busbw").value, slowest);
  EXPECT_GE(*out.metric("median_group_busbw").value, slowest);
}

TEST(GroupsCase, AWrongSumFailsAndNamesTheRank) {
  const test::Outcome out = groups_over_threads(6, {{"bytes", std::int64_t{4096}}}, {Fault::wrong_sum});
  const Check& check = out.check("wrong_elements");
  EXPECT_FALSE(check.passed);
  EXPECT_EQ(check.value, 6);  // one in each grouping
  ASSERT_EQ(check.culprits.size(), 1u);
  EXPECT_EQ(check.culprits.front().rank, 5);
}

TEST(GroupsCase, WhatItCannotMeasureIsSkippedWithTheReason) {
  EXPECT_EQ(groups_over_threads(5, {}).skipped, "groups need 6 hosts, three groups of two; here are 5");
  EXPECT_EQ(groups_over_threads(6, {{"inplace", true}}).skipped, "groups has no in-place form");
  EXPECT_EQ(groups_over_threads(6, {{"bytes", std::int64_t{1}}}).skipped, "1 bytes hold no element of f32");
}

}  // namespace
}  // namespace assay::collective
