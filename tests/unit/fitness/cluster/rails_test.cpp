// Acceptance of a cluster: collectives of each rail by itself, and what the table says of rails.
#include "harness/fitness/cluster/rails.h"

#include "harness/fitness/cluster/groups.h"
#include "harness/fitness/cluster/pairs.h"
#include "harness/json/members.h"
#include "tests/unit/fitness/cluster/judge_support.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace assay::fitness {
namespace {

using test::run_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> railed_hosts = {"a", "b", "c", "d", "e", "f"};

// A record of these hosts with that many ranks each, on GPUs: a port is slow below 90 % already.
Record railed(const std::string& key, std::size_t rails) {
  std::vector<std::string> places;
  for (const std::string& host : railed_hosts) places.insert(places.end(), rails, host);
  Record record = world(places, key);
  record.world_nodes = static_cast<int>(railed_hosts.size());
  record.device = "cuda";
  return record;
}

// 10 GB/s on every link of every rail.
Record links_of_rails(std::size_t rails) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  Record record = railed("collective/op=rails/bytes=1048576", rails);
  const std::size_t n = railed_hosts.size();
  for (std::size_t rail = 0; rail < rails; ++rail) {
    Matrix matrix{"bandwidth", "B/s", Better::higher, {}, std::vector<double>(n * n, 10e9)};
    for (std::size_t host = 0; host < n; ++host) {
      matrix.ranks.push_back(static_cast<int>(host * rails + rail));
      matrix.values[host * n + host] = none;
    }
    record.rails.push_back(matrix);
  }
  record.matrix = record.rails.front();
  return record;
}

void limit_port(Record& record, std::size_t host, std::size_t rail, double rate) {
  const std::size_t n = railed_hosts.size();
  for (std::size_t other = 0; other < n; ++other)
    if (other != host) record.rails[rail].values[host * n + other] = record.rails[rail].values[other * n + host] = rate;
}

// An all-reduce of each rail by itself.
Record sums_of_rails(const std::vector<double>& busbw) {
  Record record = railed("collective/op=all_reduce/bytes=67108864/among=rail", busbw.size());
  record.params = Json{{"op", "all_reduce"}, {"among", "rail"}};
  record.metrics = {test::metric("slowest_group_busbw", *std::ranges::min_element(busbw), "B/s"),
                    test::metric("median_group_busbw", 9e9, "B/s")};
  for (std::size_t rail = 0; rail < busbw.size(); ++rail) {
    RankGroup group{.grouping = 0, .ranks = {}, .busbw = busbw[rail]};
    for (std::size_t host = 0; host < railed_hosts.size(); ++host)
      group.ranks.push_back(static_cast<int>(host * busbw.size() + rail));
    record.groups.push_back(std::move(group));
  }
  return record;
}

WorldChecks judged_rails(std::vector<Record> records, const StageFloors& floors = {}) {
  return judge_world(run_of(std::move(records)), railed_hosts, floors);
}

TEST(AcceptRails, ASlowRailIsExplainedByTheHostWhosePortIsSlow) {
  Record links = links_of_rails(4);
  limit_port(links, 2, 3, 5e9);
  const WorldChecks found = judged_rails({links, sums_of_rails({9e9, 9e9, 9e9, 4.5e9})});
  for (const auto& [host, check] : found.checks)
    EXPECT_EQ(check.state, host == "c" ? Fitness::fail : Fitness::pass) << host << text(check);
  EXPECT_THAT(text(found.checks.at("c")),
              HasSubstr("among=rail: rail 3, all hosts at once: 4.5 GB/s, 50 % of the usual rail (90 % at least); its "
                        "slow links are those of c"));
  EXPECT_THAT(found.switches, IsEmpty());
  ASSERT_EQ(found.rails.groups.size(), 4u);
  const RailGroup& slow = found.rails.groups[3];
  EXPECT_TRUE(slow.slow);
  EXPECT_EQ(slow.rail, 3u);
  EXPECT_EQ(slow.hosts, railed_hosts);
  EXPECT_DOUBLE_EQ(slow.share, 0.5);
  EXPECT_THAT(slow.explained_by, ElementsAre("c"));
  EXPECT_FALSE(found.rails.groups[0].slow);
  EXPECT_TRUE(found.slow_keys.contains("collective/op=all_reduce/bytes=67108864/among=rail"));
}

TEST(AcceptRails, ARailThatNoLinkExplainsIsThatOfItsSwitches) {
  const WorldChecks found = judged_rails({links_of_rails(4), sums_of_rails({9e9, 9e9, 4.5e9, 9e9})});
  for (const auto& [host, check] : found.checks) EXPECT_EQ(check.state, Fitness::pass) << host << text(check);
  ASSERT_EQ(found.switches.size(), 1u);
  EXPECT_EQ(found.switches.front().text(),
            "rail 2: 50 % of the usual rail's busbw on a, b, c, d, e, f at once "
            "(collective/op=all_reduce/bytes=67108864/among=rail), which no link between two of them explains: the "
            "switches of this rail, not the hosts");
  EXPECT_EQ(json_of(found.switches.front()).at("leaf"), Json());
  // All are measured again before it counts.
  EXPECT_THAT(found.slow, testing::ElementsAreArray(railed_hosts));
  // Above the level's share it is a remark.
  const WorldChecks less = judged_rails({links_of_rails(4), sums_of_rails({9e9, 9e9, 7.2e9, 9e9})});
  EXPECT_THAT(less.switches, IsEmpty());
  EXPECT_THAT(less.note,
              HasSubstr("rail 2, all hosts at once: 7.2 GB/s, 80 % of the usual rail (90 % at least); no link"));
  const WorldChecks none = judged_rails({links_of_rails(4), sums_of_rails({9e9, 9e9, 8.2e9, 9e9})});
  EXPECT_THAT(none.slow, IsEmpty());
  EXPECT_EQ(none.note, "");
}

TEST(AcceptRails, TwoRailsAndNoLinks) {
  const WorldChecks found = judged_rails({sums_of_rails({4e9, 9e9})});
  ASSERT_EQ(found.switches.size(), 1u);
  EXPECT_EQ(found.switches.front().rail, 0u);
  // Without links the level's share is the limit.
  EXPECT_THAT(judged_rails({sums_of_rails({6e9, 9e9})}).switches, IsEmpty());
  EXPECT_EQ(judged_rails({sums_of_rails({6e9, 9e9})}, {.pair_share = 0.7}).switches.size(), 1u);
}

TEST(AcceptRails, ARecordWithoutFiguresSaysNothing) {
  Record broken = sums_of_rails({0, 9e9, 9e9, 9e9});
  EXPECT_TRUE(judged_rails({broken}).rails.groups[0].slow);
  broken = sums_of_rails({0, 0});
  EXPECT_THAT(judged_rails({broken}).switches, IsEmpty());
  broken.groups.clear();
  EXPECT_THAT(judged_rails({broken}).rails.groups, IsEmpty());
}

TEST(AcceptRails, EveryPortHasItsFigures) {
  Record links = links_of_rails(2);
  links.ranks[5].pci = "0000:1b:00.0", links.ranks[5].nic = "mlx5_1:1";
  limit_port(links, 2, 1, 5e9);
  links.rails[0].values[0 * 6 + 1] = 1e9;  // a to b
  const WorldChecks found = judged_rails({links});
  ASSERT_EQ(found.rails.ports.size(), 12u);
  const RailPort& slow = found.rails.ports[5];
  EXPECT_EQ(json_of(slow), (Json{{"host", "c"},
                                 {"rail", 1},
                                 {"nic", "mlx5_1:1"},
                                 {"gpu", "0000:1b:00.0"},
                                 {"send", 5e9},
                                 {"receive", 5e9},
                                 {"floor", slow.floor},
                                 {"partners", 5},
                                 {"state", "fail"}}));
  EXPECT_NEAR(slow.floor, 9e9, 1e4);
  const auto state_of = [&](std::size_t port) {
    return found.rails.ports[port].host + " " + found.rails.ports[port].state;
  };
  EXPECT_EQ(state_of(0), "a inconclusive");
  EXPECT_EQ(state_of(1), "a pass");
  EXPECT_EQ(state_of(2), "b inconclusive");
  EXPECT_EQ(state_of(4), "c pass");
}

TEST(AcceptRails, PortsBelowASlowSwitchSaySo) {
  Record links = links_of_rails(2);
  for (const std::size_t host : {0, 1})
    for (std::size_t other = 2; other < 6; ++other)
      links.rails[1].values[host * 6 + other] = links.rails[1].values[other * 6 + host] = 7e9;
  const Leaves leaves = {{"a", "l1"}, {"b", "l1"}, {"c", "l2"}, {"d", "l2"}, {"e", "l3"}, {"f", "l3"}};
  const WorldChecks found = judged_rails({links, sums_of_rails({9e9, 6e9})}, {.leaves = &leaves});
  EXPECT_EQ(found.rails.ports[1].state, "switch");
  EXPECT_EQ(found.rails.ports[0].state, "pass");
  EXPECT_THAT(found.rails.groups[1].explained_by, ElementsAre("l1"));
  ASSERT_EQ(found.switches.size(), 1u);
  EXPECT_EQ(found.switches.front().leaf, "l1");
}

TEST(AcceptRails, ARailThatWasSlowOnceIsNotSlow) {
  RunData first = run_of({sums_of_rails({9e9, 9e9, 4.5e9, 3e9})});
  // Fewer hosts reach more; what counts is the share of the usual rail.
  const RunData again = run_of({sums_of_rails({12e9, 12e9, 12e9, 4e9})});
  keep_better_pairs(first, again, {});
  const Record& record = first.records.front();
  EXPECT_DOUBLE_EQ(record.groups[2].busbw, 9e9);
  EXPECT_DOUBLE_EQ(record.groups[3].busbw, 3e9);
  EXPECT_DOUBLE_EQ(*record.metrics[0].value, 3e9);
  EXPECT_DOUBLE_EQ(*record.metrics[1].value, 9e9);
}

}  // namespace
}  // namespace assay::fitness
