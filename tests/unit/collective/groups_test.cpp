// op=groups and among=rail over ranks that are threads: each counts as a host, or is said to be on one.
#include "suites/collective/groups.h"

#include "harness/comm/forwarding_communicator.h"
#include "tests/unit/collective/over_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
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

// Ranks that say which hosts they are on.
class OnHosts final : public ForwardingCommunicator {
 public:
  OnHosts(Communicator& inner, std::vector<std::string> hosts)
      : ForwardingCommunicator(inner), hosts_(std::move(hosts)) {}

  void all_gather_host(const void* own, void* all, std::size_t bytes) override {
    inner_.all_gather_host(own, all, bytes);
    constexpr std::size_t name_bytes = 256;  // as hosts_of_ranks() exchanges them
    for (std::size_t rank = 0; bytes == name_bytes && rank < hosts_.size(); ++rank)
      std::strcpy(static_cast<char*>(all) + rank * bytes, hosts_[rank].c_str());
  }

 private:
  std::vector<std::string> hosts_;
};

test::Outcome on_rails(const std::vector<std::string>& hosts, std::map<std::string, ParamValue> changes,
                       const std::set<Fault>& faults = {}) {
  changes["among"] = std::string("rail");
  changes.try_emplace("bytes", std::int64_t{4096});
  test::Outcome first;
  test::run_ranks(static_cast<int>(hosts.size()), [&](Communicator& comm) {
    OnHosts named(comm, hosts);
    test::Outcome own = test::run_case(collective_family(), changes, named, faults);
    if (comm.rank() == 0) first = std::move(own);
  });
  return first;
}

TEST(RailGroups, EachRailMakesTheCallByItself) {
  for (const std::string op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"}) {
    // The third rank of b is on a rail of its own.
    const test::Outcome out = on_rails({"a", "a", "b", "b", "b", "c", "c"}, {{"op", op}});
    ASSERT_FALSE(out.skipped) << *out.skipped;
    EXPECT_TRUE(out.check("wrong_elements").passed) << op;
    EXPECT_TRUE(out.check("changed_inputs").passed) << op;
    ASSERT_EQ(out.groups.size(), 2u);
    EXPECT_EQ(out.groups[0].ranks, (std::vector{0, 2, 5}));
    EXPECT_EQ(out.groups[1].ranks, (std::vector{1, 3, 6}));
    const double slowest = std::min(out.groups[0].busbw, out.groups[1].busbw);
    EXPECT_GT(slowest, 0);
    EXPECT_EQ(out.metric("slowest_group_busbw").value, slowest);
    EXPECT_EQ(out.conditions.at("redop"), op == "all_reduce" || op == "reduce_scatter" ? "sum" : "none");
  }
}

TEST(RailGroups, BusbwIsThatOfTheRailsOwnRanks) {
  const test::Outcome out = on_rails({"a", "a", "b", "b"}, {{"op", std::string("all_gather")}});
  const auto& time = out.measurement.rounds.at(0).at(0);
  EXPECT_DOUBLE_EQ(out.groups[0].busbw, 4096 / 2.0 / time->median);  // (n-1)/n of n = 2 ranks
}

TEST(RailGroups, AWrongResultNamesTheRank) {
  const test::Outcome out = on_rails({"a", "a", "b", "b"}, {{"op", std::string("all_to_all")}}, {Fault::wrong_sum});
  const Check& check = out.check("wrong_elements");
  EXPECT_FALSE(check.passed);
  ASSERT_EQ(check.culprits.size(), 1u);
  EXPECT_EQ(check.culprits.front().rank, 3);
}

TEST(RailGroups, WhatTheyCannotMeasureIsSkippedWithTheReason) {
  const auto why = [](const std::vector<std::string>& hosts, const std::string& op, std::int64_t bytes = 4096) {
    return on_rails(hosts, {{"op", op}, {"bytes", bytes}}).skipped;
  };
  EXPECT_EQ(why({"a", "a"}, "all_reduce"), "one host has no rails to another");
  EXPECT_EQ(why({"a", "b"}, "all_reduce"), "each host has one rank: among=all measures the same");
  EXPECT_EQ(why({"a", "a", "b", "b"}, "rails"), "pairs and groups of hosts have no form among=rail");
  EXPECT_EQ(why({"a", "a", "b", "b"}, "groups"), "pairs and groups of hosts have no form among=rail");
  EXPECT_EQ(why({"a", "a", "b", "b"}, "send_recv"), "there is no send_recv among=rail");
  EXPECT_EQ(why({"a", "a", "b", "b"}, "all_gather", 4), "4 bytes hold no element of f32 for each of 2 ranks");
}

}  // namespace
}  // namespace assay::collective
