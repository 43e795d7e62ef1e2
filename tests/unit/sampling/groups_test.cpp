// Random groups of hosts: each host once in a grouping, in groups of equal size, and other ones each time.
#include "harness/sampling/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

TEST(RandomGroups, EachGroupingHasEachHostOnceAndLeavesFewerThanAGroup) {
  for (const std::size_t hosts : {6, 7, 11, 12, 25, 64}) {
    std::multiset<std::size_t> sizes;
    for (const Grouping& grouping : random_groupings(hosts, 1)) {
      const std::size_t size = grouping.front().size();
      sizes.insert(size);
      EXPECT_GE(grouping.size(), 3u);
      EXPECT_EQ(grouping.size(), hosts / size);
      std::set<std::size_t> members;
      for (const auto& group : grouping) {
        EXPECT_EQ(group.size(), size);
        members.insert(group.begin(), group.end());
      }
      EXPECT_EQ(members.size(), hosts / size * size);
      EXPECT_LT(*members.rbegin(), hosts);
    }
    EXPECT_EQ(sizes.count(2), hosts < 12 ? 6u : hosts < 24 ? 3u : 2u) << hosts;
    EXPECT_EQ(sizes.count(8), hosts < 24 ? 0u : 2u) << hosts;
    EXPECT_EQ(sizes.size(), 6u) << hosts;
  }
}

TEST(RandomGroups, TheSeedDecidesAndTooFewHostsHaveNone) {
  EXPECT_EQ(random_groupings(12, 5), random_groupings(12, 5));
  EXPECT_NE(random_groupings(12, 5), random_groupings(12, 6));
  const auto all = random_groupings(12, 5);
  EXPECT_NE(all[0], all[2]);  // both of pairs
  for (std::size_t hosts = 0; hosts < min_grouped_hosts; ++hosts) EXPECT_TRUE(random_groupings(hosts, 1).empty());
}

}  // namespace
}  // namespace assay
