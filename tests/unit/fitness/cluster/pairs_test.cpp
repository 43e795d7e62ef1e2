// Acceptance of a cluster: slow pairs of hosts, and slow rails.
#include "harness/fitness/cluster/pairs.h"
#include "tests/unit/fitness/cluster/judge_support.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace assay::fitness {
namespace {

using test::metric;
using test::run_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

RunData matrix_of(const std::vector<std::string>& hosts, const std::vector<double>& values) {
  Record record = world(hosts, "collective/op=pairwise/bytes=1048576");
  Matrix matrix{"bandwidth", "B/s", Better::higher, {}, values};
  for (std::size_t i = 0; i < hosts.size(); ++i) matrix.ranks.push_back(static_cast<int>(i));
  record.matrix = matrix;
  return run_of({record});
}

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

TEST(AcceptPairs, AHostThatOnlySendsSlowlyIsNamed) {
  const auto checks = judge_world(matrix_of({"a", "b", "c", "d"}, {not_measured, 10, 10, 10,  //
                                                                   10, not_measured, 11, 9,   //
                                                                   1, 1, not_measured, 1,     //
                                                                   10, 10, 10, not_measured}),
                                  {"a", "b", "c", "d"}, {})
                          .checks;
  EXPECT_EQ(state(checks, "c"), Fitness::fail);
  for (const char* other : {"a", "b", "d"}) EXPECT_EQ(state(checks, other), Fitness::pass) << other;
  EXPECT_EQ(checks.at("c").figure, 1);
  EXPECT_EQ(checks.at("c").floor, 6);
  EXPECT_FALSE(checks.at("c").at_most);
  EXPECT_EQ(checks.at("c").of, "collective/op=pairwise/bytes=1048576 best in sending");
  EXPECT_THAT(text(checks.at("c")), HasSubstr("3 of 3 links to others are slow: 1 B/s in sending and 10 B/s in "
                                              "receiving, the usual link 10 B/s (60 % at least)"));
}

TEST(AcceptPairs, OneSlowLinkIsOfEitherHost) {
  const auto checks = judge_world(matrix_of({"a", "b", "c", "d"}, {not_measured, 10, 10, 10, 10, not_measured, 2, 10,
                                                                   10, 2, not_measured, 10, 10, 10, 10, not_measured}),
                                  {"a", "b", "c", "d"}, {})
                          .checks;
  EXPECT_EQ(state(checks, "a"), Fitness::pass);
  EXPECT_EQ(state(checks, "b"), Fitness::unsure);
  EXPECT_EQ(state(checks, "c"), Fitness::unsure);
  EXPECT_THAT(text(checks.at("b")), HasSubstr("b - c is slow: 2 B/s from b and 2 B/s from c"));
}

TEST(AcceptPairs, LatenciesAreSlowIfTheyAreLong) {
  Record record = world(three_hosts, "collective/op=pairwise/bytes=8");
  record.matrix = Matrix{"latency",
                         "s",
                         Better::lower,
                         {0, 1, 2},
                         {not_measured, 1e-6, 9e-6, 1e-6, not_measured, 9e-6, 9e-6, 9e-6, not_measured}};
  const auto passes = [&](double share) {
    return state(judge_world(run_of({record}), three_hosts, {.pair_share = share}).checks, "c") == Fitness::pass;
  };
  EXPECT_TRUE(passes(0.1));   // up to ten times the usual latency
  EXPECT_FALSE(passes(0.2));  // all links of c take nine times that of the others
  record.matrix->values = {not_measured, 1e-6, 9e-5, 1e-6, not_measured, 1e-6, 9e-5, 1e-6, not_measured};
  EXPECT_EQ(state(judge_world(run_of({record}), three_hosts, {}).checks, "a"), Fitness::unsure);
}

TEST(AcceptPairs, LatenciesMayBeThreeTimesTheMedian) {
  Record record = world(three_hosts, "collective/op=pairwise/bytes=8");
  record.matrix = Matrix{"latency",
                         "s",
                         Better::lower,
                         {0, 1, 2},
                         {not_measured, 1e-6, 2.9e-6, 1e-6, not_measured, 1e-6, 2.9e-6, 1e-6, not_measured}};
  WorldChecks judged = judge_world(run_of({record}), three_hosts, {});
  for (const std::string& host : three_hosts) EXPECT_EQ(state(judged.checks, host), Fitness::pass) << host;
  EXPECT_THAT(judged.slow, IsEmpty());
  record.matrix->values[2] = record.matrix->values[6] = 3.1e-6;
  judged = judge_world(run_of({record}), three_hosts, {});
  EXPECT_EQ(state(judged.checks, "a"), Fitness::unsure);
  EXPECT_THAT(judged.slow, ElementsAre("a", "c"));
  EXPECT_THAT(text(judged.checks.at("a")), HasSubstr("(3 times at most)"));
  EXPECT_TRUE(judged.checks.at("a").at_most);
  EXPECT_EQ(judged.checks.at("a").culprits, (std::vector<FailedPart>{{"pair", "a - c"}}));
}

TEST(AcceptPairs, WhatWasMeasuredTwiceCountsWithTheBetterFigure) {
  RunData first = matrix_of({"a", "b", "c", "d"}, {not_measured, 10, 1, 10, 10, not_measured, 10, 10,  //
                                                   1, 10, not_measured, 10, 10, 10, 10, not_measured});
  first.records.front().metrics = {metric("slowest_pair_bandwidth", 1, "B/s", Interval{0.9, 1.1})};
  const RunData again = matrix_of({"c", "d", "a"}, {not_measured, 8, 7, 8, not_measured, 9, 0.5, 9, not_measured});
  keep_better_pairs(first, again, {"a", "c"});
  const Matrix& matrix = *first.records.front().matrix;
  EXPECT_EQ(matrix.values[8], 7);   // c to a
  EXPECT_EQ(matrix.values[2], 1);   // a to c: slow again
  EXPECT_EQ(matrix.values[3], 10);  // a to d: worse than at first
  // What a suspect sent to hosts that took no part this time counts as what it sends now.
  RunData slow = matrix_of({"a", "b", "c", "d"}, {not_measured, 1, 1, 1, 10, not_measured, 10, 10,  //
                                                  10, 2, not_measured, 10, 10, 10, 10, not_measured});
  keep_better_pairs(slow, matrix_of({"a", "b"}, {not_measured, 9, 9, not_measured}), {"a"});
  const std::vector<double>& values = slow.records.front().matrix->values;
  EXPECT_EQ(values[3], 9);   // a to d
  EXPECT_EQ(values[9], 2);   // c to b
  EXPECT_EQ(values[4], 10);  // b to a
  EXPECT_EQ(first.records.front().metrics.front().value, 1);
  EXPECT_FALSE(first.records.front().metrics.front().ci95);
}

TEST(AcceptPairs, LinksToHostsThatTookNoPartCountAsThoseToHostsThatNobodySuspects) {
  // a and b are fast with each other alone, as below a slow switch: what they send to d stays slow.
  RunData first = matrix_of({"a", "b", "c", "d"}, {not_measured, 10, 1, 1, 10, not_measured, 1, 1,  //
                                                   1, 1, not_measured, 10, 1, 1, 10, not_measured});
  const RunData again = matrix_of({"a", "b", "c"}, {not_measured, 10, 2, 10, not_measured, 2, 2, 2, not_measured});
  keep_better_pairs(first, again, {"a", "b"});
  EXPECT_EQ(first.records.front().matrix->values[3], 2);
}

TEST(AcceptPairs, SuspectsGetPartnersThatAreNoneThemselves) {
  const std::vector<std::string> hosts = {"a", "b", "c", "d", "e", "f"};
  EXPECT_THAT(with_partners({"b"}, hosts), ElementsAre("b", "c", "e", "f"));
  EXPECT_THAT(with_partners({"a", "b", "f"}, hosts), ElementsAre("a", "b", "c", "d", "e", "f"));
  EXPECT_THAT(with_partners({"a", "b"}, {"a", "b"}), ElementsAre("a", "b"));
}

// ---- floors on pairs

Floors pair_floor(double limit, const std::string& name = "slowest_pair_bandwidth") {
  Floor floor = floor_of(limit);
  floor.key = "collective/op=pairwise/*", floor.metric = name, floor.unit = "B/s", floor.required = true;
  return floors_of(floor);
}

// Bandwidths of 10 between four hosts but for some pairs, and the slowest of them as its metric.
RunData four_hosts(const std::map<std::pair<std::size_t, std::size_t>, double>& others) {
  std::vector<double> values(16, 10);
  for (std::size_t i = 0; i < 4; ++i) values[5 * i] = not_measured;
  double slowest = 10;
  for (const auto& [pair, value] : others) {
    values[4 * pair.first + pair.second] = value;
    slowest = std::min(slowest, value);
  }
  RunData run = matrix_of({"a", "b", "c", "d"}, values);
  run.records.front().metrics = {metric("slowest_pair_bandwidth", slowest, "B/s")};
  return run;
}

WorldChecks against(const RunData& run, const Floors& floors) {
  return judge_world(run, {"a", "b", "c", "d"}, {.user = &floors, .pair_share = 0.01});
}

TEST(AcceptPairs, AMissedFloorBlamesTheHostWithTheBadPortAlone) {
  // Sending, receiving, and both.
  for (const auto& bad :
       {four_hosts({{{2, 0}, 1}, {{2, 1}, 1}, {{2, 3}, 1}}), four_hosts({{{0, 2}, 1}, {{1, 2}, 2}, {{3, 2}, 1}}),
        four_hosts({{{2, 0}, 1}, {{2, 1}, 1}, {{0, 2}, 1}, {{1, 2}, 1}})}) {
    const WorldChecks world = against(bad, pair_floor(5));
    EXPECT_EQ(state(world.checks, "c"), Fitness::fail);
    for (const char* other : {"a", "b", "d"}) {
      EXPECT_EQ(state(world.checks, other), Fitness::pass) << other;
      EXPECT_THAT(world.checks.at(other).missed, IsEmpty());
    }
    EXPECT_EQ(world.checks.at("c").culprit, "host c");
    EXPECT_THAT(text(world.checks.at("c")), HasSubstr("of 3 hosts: a, b"));
    EXPECT_EQ(world.checks.at("c").figure, 1);
    EXPECT_EQ(world.checks.at("c").floor, 5);
    EXPECT_FALSE(world.repeat);  // the others' pairs are known
  }
}

TEST(AcceptPairs, AMissedFloorOfOnePairBlamesBothAndOfTwoPairsTheirCommonHost) {
  auto checks = against(four_hosts({{{1, 2}, 1}}), pair_floor(5)).checks;
  EXPECT_EQ(state(checks, "b"), Fitness::fail);
  EXPECT_EQ(state(checks, "c"), Fitness::fail);
  EXPECT_EQ(state(checks, "a"), Fitness::pass);
  EXPECT_THAT(text(checks.at("b")), HasSubstr("slow with 1 of 3 hosts: c"));
  checks = against(four_hosts({{{1, 2}, 1}, {{0, 1}, 1}}), pair_floor(5)).checks;
  EXPECT_EQ(state(checks, "b"), Fitness::fail);
  for (const char* other : {"a", "c", "d"}) EXPECT_EQ(state(checks, other), Fitness::pass) << other;
  // Two bad hosts.
  checks = against(four_hosts({{{0, 1}, 1}, {{0, 2}, 1}, {{0, 3}, 1}, {{1, 2}, 1}, {{1, 3}, 1}}), pair_floor(5)).checks;
  for (const char* bad : {"a", "b"}) EXPECT_EQ(state(checks, bad), Fitness::fail) << bad;
  for (const char* other : {"c", "d"}) EXPECT_EQ(state(checks, other), Fitness::pass) << other;
}

TEST(AcceptPairs, AMissedFloorOfAllPairsBlamesAllAndACeilingIsAFloorToo) {
  auto checks = against(four_hosts({}), pair_floor(20)).checks;
  for (const char* host : {"a", "b", "c", "d"}) EXPECT_EQ(state(checks, host), Fitness::fail) << host;
  RunData run = four_hosts({{{0, 3}, 30}, {{1, 3}, 30}, {{2, 3}, 30}});
  run.records.front().matrix->unit = "s", run.records.front().matrix->better = Better::lower;
  run.records.front().metrics = {test::seconds("slowest_pair_latency", 30)};
  Floors ceiling = pair_floor(20, "slowest_pair_latency");
  ceiling.floors.front().bound = Bound::at_most, ceiling.floors.front().unit = "s";
  checks = against(run, ceiling).checks;
  EXPECT_EQ(state(checks, "d"), Fitness::fail);
  for (const char* host : {"a", "b", "c"}) EXPECT_EQ(state(checks, host), Fitness::pass) << host;
}

// Four hosts with two rails each, 10 GB/s everywhere.
Record rails_of_four() {
  const std::vector<std::string> hosts = {"a", "a", "b", "b", "c", "c", "d", "d"};
  Record record = world(hosts, "collective/op=rails/bytes=1");
  record.world_nodes = 4;
  std::vector<double> values(16, 10e9);
  for (std::size_t host = 0; host < 4; ++host) values[5 * host] = not_measured;
  for (const int rail : {0, 1})
    record.rails.push_back({"bandwidth", "B/s", Better::higher, {rail, rail + 2, rail + 4, rail + 6}, values});
  record.matrix = record.rails.front();
  return record;
}

TEST(AcceptPairs, TheSlowPortOfARailIsNamed) {
  Record record = rails_of_four();
  for (const std::size_t other : {0, 1, 3}) record.rails[1].values[4 * other + 2] = 4e9;  // c receives on rail 1
  const std::vector<std::string> hosts = {"a", "b", "c", "d"};
  const WorldChecks found = judge_world(run_of({record}), hosts, {});
  for (const std::string& host : hosts)
    EXPECT_EQ(state(found.checks, host), host == "c" ? Fitness::fail : Fitness::pass) << host;
  EXPECT_THAT(
      text(found.checks.at("c")),
      HasSubstr("rail 1: 3 of 3 links to others are slow: 10 GB/s in sending and 4 GB/s in receiving, the usual "
                "link 10 GB/s (60 % at least)"));
  EXPECT_THAT(found.checks.at("c").culprits, ElementsAre(FailedPart{"port", "rail 1"}));
  EXPECT_THAT(found.slow, ElementsAre("c"));
}

TEST(AcceptPairs, ASlowWayOrLinkMayBeTheFaultOfEitherEnd) {
  Record record = rails_of_four();
  for (Matrix& rail : record.rails) rail.values[1] = rail.values[4] = 2e9;  // a - b
  const std::vector<std::string> hosts = {"a", "b", "c", "d"};
  WorldChecks found = judge_world(run_of({record}), hosts, {});
  EXPECT_THAT(text(found.checks.at("b")), HasSubstr("a - b is slow on 2 of 2 rails: 2 GB/s from a and 2 GB/s from b"));
  EXPECT_EQ(state(found.checks, "a"), Fitness::unsure);
  EXPECT_EQ(state(found.checks, "c"), Fitness::pass);
  record = rails_of_four();
  record.rails[0].values[4 * 2 + 3] = 1e9;  // c -> d
  found = judge_world(run_of({record}), hosts, {});
  EXPECT_THAT(text(found.checks.at("c")), HasSubstr("c - d is slow on rail 0: 1 GB/s from c and 10 GB/s from d"));
  EXPECT_EQ(state(found.checks, "d"), Fitness::unsure);
  EXPECT_EQ(state(found.checks, "a"), Fitness::pass);
}

// Eight hosts on two leaf switches, with two rails each: bandwidths of 10 GB/s but for what the test changes.
class TwoLeaves {
 public:
  TwoLeaves() {
    std::vector<std::string> places;
    for (const char name : std::string("abcdefgh")) {
      hosts.emplace_back(1, name);
      leaves[hosts.back()] = hosts.size() <= 4 ? "leaf1" : "leaf2";
      for (int rail = 0; rail < 2; ++rail) places.push_back(hosts.back());
    }
    record = world(places, "collective/op=rails/bytes=67108864");
    record.world_nodes = 8;
    record.device = "cuda";
    std::vector<double> values(64, 10e9);
    for (std::size_t host = 0; host < 8; ++host) values[9 * host] = not_measured;
    for (const int rail : {0, 1}) {
      record.rails.push_back({"bandwidth", "B/s", Better::higher, {}, values});
      for (int host = 0; host < 8; ++host) record.rails.back().ranks.push_back(2 * host + rail);
    }
    record.matrix = record.rails.front();
    record.metrics = {metric("slowest_pair_bandwidth", 10e9, "B/s")};
  }
  void set(std::size_t a, std::size_t b, std::size_t rail, double value) {
    record.rails[rail].values[8 * a + b] = record.rails[rail].values[8 * b + a] = value;
  }
  void slow_leaf2(double value) {
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = 4; b < 8; ++b) set(a, b, 1, value);
  }
  WorldChecks judged(const Floors* user = nullptr) const {
    return judge_world(run_of({record}), hosts, {.user = user, .leaves = &leaves});
  }

  std::vector<std::string> hosts;
  Leaves leaves;
  Record record;
};

TEST(AcceptPairs, ASlowSwitchIsNoHostsFault) {
  TwoLeaves cluster;
  cluster.slow_leaf2(7e9);
  ASSERT_EQ(cluster.judged().switches.size(), 1u);
  EXPECT_THAT(cluster.judged().switches[0].text(),
              StartsWith("leaf1 or leaf2, rail 1: 70 % of the usual speed on a, b, c, d,"));
  // A third switch shows which of them it is.
  cluster = {};
  for (const std::size_t host : {6, 7}) cluster.leaves[cluster.hosts[host]] = "leaf3";
  for (std::size_t a = 0; a < 8; ++a)
    for (const std::size_t b : {4, 5})
      if (a != 4 && a != 5) cluster.set(a, b, 1, 7e9);
  WorldChecks found = cluster.judged();
  for (const std::string& host : cluster.hosts) EXPECT_EQ(state(found.checks, host), Fitness::pass) << host;
  ASSERT_EQ(found.switches.size(), 1u);
  EXPECT_EQ(found.switches[0].text(),
            "leaf2, rail 1: 70 % of the usual speed on e, f (12 of 12 links to other switches; "
            "collective/op=rails/bytes=67108864): the switch, not the hosts");
  EXPECT_THAT(found.slow, ElementsAre("e", "f")) << "they are measured again";
  Acceptance acceptance;
  acceptance.hosts.resize(1);
  acceptance.hosts[0].checks["pairs"].note(Fitness::pass, "");
  EXPECT_EQ(acceptance.fitness(), Fitness::pass);
  acceptance.switches = found.switches;
  EXPECT_EQ(acceptance.fitness(), Fitness::fail);
  // A missed floor is the switch's fault, too.
  cluster.record.metrics = {metric("slowest_pair_bandwidth", 7e9, "B/s")};
  Floors floors = pair_floor(8e9);
  floors.floors.front().key = "collective/op=rails/*";
  found = cluster.judged(&floors);
  for (const std::string& host : cluster.hosts) EXPECT_EQ(state(found.checks, host), Fitness::pass) << host;
  EXPECT_EQ(found.switches.size(), 1u);
  // Without the switches, ports are named.
  cluster.leaves.clear();
  found = cluster.judged();
  EXPECT_THAT(found.switches, IsEmpty());
  EXPECT_THAT(found.checks.at("e").culprits, ElementsAre(FailedPart{"port", "rail 1"}));
}

TEST(AcceptPairs, RailsMeasuredAgainCountWithTheBetterFigure) {
  Record record = rails_of_four(), again = rails_of_four();
  for (const std::size_t other : {0, 1, 3}) record.rails[1].values[4 * other + 2] = 4e9;
  RunData first = run_of({record});
  keep_better_pairs(first, run_of({again}), {"c"});
  EXPECT_EQ(first.records.front().rails[1].values[2], 10e9);
  EXPECT_EQ(state(judge_world(first, {"a", "b", "c", "d"}, {}).checks, "c"), Fitness::pass);
}

TEST(AcceptPairs, AHostWithOneGpuLessHasOneRailLess) {
  TwoLeaves cluster;
  for (std::size_t other = 0; other < 8; ++other)
    if (other != 2) cluster.set(2, other, 1, 4e9);
  Matrix& rail = cluster.record.rails[1];  // without the last host
  std::vector<double> values;
  for (std::size_t a = 0; a < 7; ++a) values.insert(values.end(), &rail.values[8 * a], &rail.values[8 * a] + 7);
  rail.ranks.pop_back();
  rail.values = values;
  const WorldChecks found = cluster.judged();
  EXPECT_THAT(text(found.checks.at("c")), HasSubstr("rail 1: 6 of 6 links to others are slow"));
  for (const std::string& host : cluster.hosts)
    EXPECT_EQ(state(found.checks, host), host == "c" ? Fitness::fail : Fitness::pass) << host;
}

TEST(AcceptPairs, APortCabledToTheWrongSwitchIsItsHostsAndSoIsTheFirstHosts) {
  for (const std::size_t bad : {1, 0}) {
    TwoLeaves cluster;
    for (std::size_t other = 0; other < 8; ++other)
      if (other != bad) cluster.set(bad, other, 1, 8e9);
    const WorldChecks found = cluster.judged();
    EXPECT_THAT(found.switches, IsEmpty());
    for (std::size_t host = 0; host < 8; ++host)
      EXPECT_EQ(state(found.checks, cluster.hosts[host]), host == bad ? Fitness::fail : Fitness::pass) << host;
    EXPECT_THAT(found.checks.at(cluster.hosts[bad]).culprits, ElementsAre(FailedPart{"port", "rail 1"}));
  }
}

TEST(AcceptPairs, TwoFaultsDoNotHideEachOther) {
  TwoLeaves cluster;
  cluster.leaves.clear();
  for (std::size_t other = 0; other < 8; ++other) {
    if (other != 4) cluster.set(4, other, 1, 7e9);
    if (other != 5) cluster.set(5, other, 1, 3e9);
  }
  cluster.set(0, 4, 0, 2e9);
  const WorldChecks found = cluster.judged();
  EXPECT_EQ(state(found.checks, "e"), Fitness::fail);
  EXPECT_EQ(state(found.checks, "f"), Fitness::fail);
  EXPECT_EQ(state(found.checks, "a"), Fitness::unsure);
  for (const char* other : {"b", "c", "d", "g", "h"}) EXPECT_EQ(state(found.checks, other), Fitness::pass) << other;
}

TEST(AcceptPairs, HostsOfTwoKindsDoNotFailAndDoNotPassInSilence) {
  for (const std::size_t fast : {3, 4, 5}) {
    TwoLeaves cluster;
    cluster.leaves.clear();
    for (std::size_t a = 0; a < 8; ++a)
      for (std::size_t b = std::max(a + 1, fast); b < 8; ++b)
        for (const std::size_t rail : {0, 1}) cluster.set(a, b, rail, 7e9);
    const WorldChecks found = cluster.judged();
    for (std::size_t host = 0; host < 8; ++host)
      EXPECT_EQ(state(found.checks, cluster.hosts[host]), host < fast ? Fitness::pass : Fitness::unsure) << host;
    EXPECT_THAT(text(found.checks.at("h")), HasSubstr(" of 8 hosts: floors would tell which are right"));
  }
}

// ---- the ports' own rate

TEST(AcceptPairs, LinksThatAreAllAtHalfRateFail) {
  TwoLeaves cluster;
  cluster.leaves.clear();
  cluster.record.params = Json{{"bytes", 64 << 20}};
  std::map<std::string, double> rates;
  for (const std::string& host : cluster.hosts) rates[host] = 20e9;
  const auto judged = [&](const Floors* user = nullptr) {
    return judge_world(run_of({cluster.record}), cluster.hosts, {.user = user, .port_rates = &rates});
  };
  WorldChecks found = judged();
  for (const std::string& host : cluster.hosts) EXPECT_EQ(state(found.checks, host), Fitness::fail) << host;
  EXPECT_THAT(text(found.checks.at("a")),
              HasSubstr("down to 50 % of the rate of its port (20 GB/s), 90 % at least; slow "
                        "with 7 of 7 hosts: b, c"));
  Floors floors = pair_floor(1e9);
  floors.floors.front().key = "collective/op=rails/*";
  EXPECT_EQ(state(judged(&floors).checks, "a"), Fitness::pass) << "a floor of the user's decides";
  // One port is negotiated too high, so its host alone misses its rate; then it is not known.
  for (auto& [host, rate] : rates) rate = 10.5e9;
  EXPECT_EQ(state(judged().checks, "a"), Fitness::pass);
  EXPECT_EQ(judged().note, "");
  for (std::size_t other : {0, 1, 3, 4, 5, 6, 7}) cluster.set(2, other, 0, 9.3e9);
  found = judged();
  for (const std::string& host : cluster.hosts)
    EXPECT_EQ(state(found.checks, host), host == "c" ? Fitness::fail : Fitness::pass) << host;
  EXPECT_THAT(found.slow, ElementsAre("c"));
  rates.erase("c");
  EXPECT_EQ(state(judged().checks, "c"), Fitness::pass);
  EXPECT_THAT(judged().note, HasSubstr("which is not known on 1 host: c"));
  rates["c"] = 20e9;
  cluster.record.params = Json{{"bytes", 1 << 20}};
  EXPECT_EQ(state(judged().checks, "c"), Fitness::pass) << "small messages do not reach the rate";
}

TEST(AcceptPairs, AGpusPortHasTheRateThatTheAuditSays) {
  const auto rate = [](const Json& rails, std::size_t gpus) -> std::optional<double> {
    AuditedHost host;
    host.host = "a";
    host.gpus.resize(gpus);
    host.inventory = Json{{"rails", rails}};
    const auto rates = port_rates({.hosts = {host}});
    return rates.empty() ? std::nullopt : std::optional(rates.at("a"));
  };
  const auto ports = [](int count, const char* speed) {
    return Json{{"count", {{"exactly", count}}}, {"rate", speed}};
  };
  EXPECT_EQ(rate(Json::array({ports(8, "400 Gb/s"), ports(2, "200 Gb/s")}), 8), 50e9);
  EXPECT_EQ(rate(Json::array({ports(4, "400 Gb/s")}), 8), 25e9) << "two GPUs share a port";
  EXPECT_EQ(rate(Json::array({ports(9, "400 Gb/s")}), 8), 50e9) << "storage has one of its own";
  EXPECT_EQ(rate(Json::array({ports(4, "400 Gb/s"), ports(2, "200 Gb/s")}), 8), std::nullopt);
  EXPECT_EQ(rate(Json::array({ports(8, "400 Gb/s")}), 0), std::nullopt);
  EXPECT_EQ(rate(Json::array(), 8), std::nullopt);
  EXPECT_EQ(rate(nullptr, 8), std::nullopt);
}

}  // namespace
}  // namespace assay::fitness
