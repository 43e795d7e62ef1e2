// Slow groups of hosts and who explains them: small cases by hand, 64 hosts by simulation.
#include "harness/fitness/cluster/groups.h"

#include "harness/fitness/cluster/pairs.h"
#include "harness/sampling/groups.h"
#include "tests/unit/fitness/cluster/judge_support.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>

namespace assay::fitness {
namespace {

using test::run_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Slow = std::map<std::size_t, double>;  // times the usual, by host

// A group takes as long as its slowest host; noise is lognormal, and one group in a hundred takes up to three times as
// long by chance.
std::vector<HostGroup> measured(std::size_t hosts, const Slow& slow, std::uint64_t seed, double sigma = 0.03) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, sigma);
  std::uniform_real_distribution<double> uniform;
  std::vector<HostGroup> groups;
  for (const Grouping& grouping : random_groupings(hosts, seed))
    for (const std::vector<std::size_t>& members : grouping) {
      double time = static_cast<double>(members.size());
      for (const std::size_t host : members)
        if (const auto one = slow.find(host); one != slow.end())
          time = std::max(time, static_cast<double>(members.size()) * one->second);
      time *= std::exp(noise(random));
      if (sigma > 0 && uniform(random) < 0.01) time *= 1 + 2 * uniform(random);
      groups.push_back({members, time});
    }
  return groups;
}

std::set<std::size_t> named(const SlowGroups& found, bool sure = true) {
  std::set<std::size_t> hosts;
  for (const SlowHost& one : found.hosts)
    if (one.sure == sure) hosts.insert(one.host);
  return hosts;
}

TEST(SlowGroups, TwoSlowHostsOf64AreNamedAndNobodyElse) {
  std::size_t found_both = 0, wrong = 0, unsure = 0;
  for (std::uint64_t draw = 0; draw < 100; ++draw) {
    const double sigma = 0.02 + 0.03 * static_cast<double>(draw % 4) / 3;
    const std::set<std::size_t> bad = {draw % 64, (draw * 7 + 13) % 64};
    Slow slow;
    for (const std::size_t host : bad) slow[host] = 1 / 0.7;
    const SlowGroups found = explain_slow_groups(measured(64, slow, draw, sigma), 64, {});
    const std::set<std::size_t> hosts = named(found);
    found_both += std::ranges::includes(hosts, bad) ? 1 : 0;
    for (const std::size_t host : hosts) wrong += bad.contains(host) ? 0 : 1;
    unsure += named(found, false).size();
  }
  EXPECT_GE(found_both, 99u);
  EXPECT_LE(wrong, 1u);
  EXPECT_LE(unsure, 2u);
}

TEST(SlowGroups, HealthyHostsAreNotNamed) {
  std::size_t failed = 0, unsure = 0;
  for (std::uint64_t draw = 0; draw < 1000; ++draw) {
    const std::size_t hosts = draw % 2 == 0 ? 64 : 8;
    const double sigma = 0.02 + 0.03 * static_cast<double>(draw % 5) / 4;
    const SlowGroups found = explain_slow_groups(measured(hosts, {}, draw, sigma), hosts, {});
    failed += named(found).size();
    unsure += named(found, false).size();
  }
  EXPECT_EQ(failed, 0u);
  EXPECT_LE(unsure, 3u);
}

TEST(SlowGroups, FewHostsAndSeveralSlowOnes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_THAT(named(explain_slow_groups(measured(8, {{3, 2}}, seed, 0), 8, {})), ElementsAre(3)) << seed;
    EXPECT_THAT(named(explain_slow_groups(measured(12, {{0, 2}, {7, 1.5}}, seed, 0), 12, {})), ElementsAre(0, 7))
        << seed;
    // One of several may share most of its groups with the others.
    const SlowGroups found = explain_slow_groups(measured(64, {{1, 2}, {2, 2}, {3, 2}, {4, 2}}, seed, 0), 64, {});
    std::set<std::size_t> all = named(found);
    EXPECT_GE(all.size(), 3u) << seed;
    all.merge(named(found, false));
    EXPECT_THAT(all, ElementsAre(1, 2, 3, 4)) << seed;
  }
}

TEST(SlowGroups, FiveOfSixGroupsAreEnoughAndFourAreNotSure) {
  std::vector<HostGroup> groups = measured(8, {{3, 2}}, 1, 0);
  const auto spare_one = [&] {
    for (HostGroup& group : groups)
      if (std::ranges::find(group.hosts, 3u) != group.hosts.end() && group.time > 3) {
        group.time = 2;
        return;
      }
  };
  spare_one();
  const SlowGroups five = explain_slow_groups(groups, 8, {});
  ASSERT_THAT(named(five), ElementsAre(3));
  EXPECT_EQ(five.hosts.front().slow, 5u);
  EXPECT_EQ(five.hosts.front().groups, 6u);
  EXPECT_EQ(five.hosts.front().times, 2);
  spare_one();
  EXPECT_THAT(named(explain_slow_groups(groups, 8, {})), IsEmpty());
  EXPECT_THAT(named(explain_slow_groups(groups, 8, {}), false), ElementsAre(3));
  for (int more = 0; more < 3; ++more) spare_one();
  EXPECT_THAT(explain_slow_groups(groups, 8, {}).hosts, IsEmpty());  // one slow group is chance
}

TEST(SlowGroups, TheLimitFollowsTheNoiseWithinItsBounds) {
  EXPECT_DOUBLE_EQ(explain_slow_groups(measured(64, {}, 1, 0), 64, {}).limit, 1 / 0.9);
  EXPECT_DOUBLE_EQ(explain_slow_groups(measured(64, {}, 1, 0.5), 64, {}).limit, 1 / 0.6);
  EXPECT_NEAR(explain_slow_groups(measured(64, {}, 1, 0.05), 64, {}).limit, 1.22, 0.1);
  EXPECT_THAT(explain_slow_groups({}, 3, {}).hosts, IsEmpty());
}

// A record on hosts h0, h1, ... of one rank each.
Record groups_of(std::size_t hosts, const Slow& slow) {
  std::vector<std::string> names;
  for (std::size_t host = 0; host < hosts; ++host) names.push_back(fmt::format("h{}", host));
  Record record = world(names, "collective/op=groups/bytes=67108864");
  for (const HostGroup& group : measured(hosts, slow, 1, 0))
    record.groups.push_back({0, {group.hosts.begin(), group.hosts.end()}, 1e9 / group.time});
  return record;
}

TEST(AcceptGroups, AHostThatWasSlowOnceIsNotSlow) {
  const auto run = [](const Slow& slow) { return run_of({groups_of(12, slow)}); };
  const std::set<std::string> suspects = {"h3", "h5"};
  const auto states = [&](const RunData& measured) {
    WorldChecks found = judge_world(measured, measured.records.front().identity().hosts, {});
    return std::tuple(state(found.checks, "h3"), state(found.checks, "h5"), found.slow);
  };
  RunData first = run({{3, 2}, {5, 2}});
  EXPECT_EQ(states(first), std::tuple(Fitness::fail, Fitness::fail, suspects));
  const WorldChecks once = judge_world(first, first.records.front().identity().hosts, {});
  EXPECT_THAT(once.slow_keys, ElementsAre("collective/op=groups/bytes=67108864"));
  std::vector<std::string> many;
  for (int host = 0; host < 20; ++host) many.push_back(fmt::format("h{}", host));
  const std::vector<std::string> again = with_partners(once.slow, many, once.hosts_again);
  EXPECT_EQ(again.size(), 12u);
  EXPECT_THAT(again, testing::IsSupersetOf({"h3", "h5"}));
  first.records.front().metrics = {test::metric("slowest_group_busbw", 1, "B/s")};
  keep_better_pairs(first, run({{5, 2}}), suspects);
  EXPECT_EQ(states(first), std::tuple(Fitness::pass, Fitness::fail, std::set<std::string>{"h5"}));
  EXPECT_EQ(first.records.front().metrics.front().value, 1e9 / 8);  // a group of four with h5
  keep_better_pairs(first, run({}), suspects);
  EXPECT_EQ(states(first), std::tuple(Fitness::pass, Fitness::pass, std::set<std::string>{}));
  EXPECT_EQ(first.records.front().metrics.front().value, 1e9 / 4);
  // Without a second measurement of the case nothing changes.
  RunData other = run({{3, 2}});
  keep_better_pairs(other, run_of({world({"h3", "h4"}, "collective/op=groups/bytes=67108864")}), suspects);
  EXPECT_EQ(std::get<0>(states(other)), Fitness::fail);
}

HostChecks judged_groups(const Record& record, const StageFloors& floors = {}) {
  return judge_world(run_of({record}), record.identity().hosts, floors).checks;
}

TEST(AcceptGroups, ASlowHostFailsWithItsFigures) {
  const HostChecks checks = judged_groups(groups_of(8, {{3, 2}}));
  for (const auto& [host, check] : checks) EXPECT_EQ(check.state, host == "h3" ? Fitness::fail : Fitness::pass) << host;
  const HostCheck& slow = checks.at("h3");
  EXPECT_THAT(text(slow),
              HasSubstr("collective/op=groups/bytes=67108864: slow in 6 of 6 groups of other hosts each: 50 % "
                        "of the usual busbw of groups of their size (60 % at least)"));
  EXPECT_THAT(slow.culprits, ElementsAre(FailedPart{"host", ""}));
  EXPECT_EQ(slow.of, "collective/op=groups/bytes=67108864 busbw, of the usual");
  EXPECT_EQ(slow.figure, 0.5);
  EXPECT_EQ(slow.floor, 0.6);
  // The level's share is what a host must reach.
  EXPECT_EQ(state(judged_groups(groups_of(8, {{3, 2}}), {.pair_share = 0.4}), "h3"), Fitness::pass);
}

TEST(AcceptGroups, MostOfALeafOrAThirdOfAllAreNotSure) {
  const Record two = groups_of(12, {{3, 2}, {4, 2}});
  EXPECT_EQ(state(judged_groups(two), "h3"), Fitness::fail);
  const Leaves leaves = {{"h3", "leaf1"}, {"h4", "leaf1"}, {"h5", "leaf1"}};
  const HostChecks below_one = judged_groups(two, {.leaves = &leaves});
  EXPECT_EQ(state(below_one, "h3"), Fitness::unsure);
  EXPECT_THAT(text(below_one.at("h4")), HasSubstr("so are 2 of 3 hosts below leaf1: it may be the switch"));
  Slow many;
  for (std::size_t host = 0; host < 10; ++host) many[host] = 2;
  const HostChecks kinds = judged_groups(groups_of(24, many));
  for (const auto& [host, check] : kinds) EXPECT_NE(check.state, Fitness::fail) << host << text(check);
}

}  // namespace
}  // namespace assay::fitness
