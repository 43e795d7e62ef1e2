// Acceptance of a cluster: what each stage's records and the audit mean for each host.
#include "harness/fitness/cluster/cluster.h"
#include "tests/unit/fitness/cluster/judge_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::fitness {
namespace {

using test::metric;
using test::run_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(AcceptHost, TheSlowHostIsNamedWithItsFigureAndFloor) {
  const Floors fleet = floors_of(floor_of(0.95, true));
  const auto checks = judge_each_host({each_host({record_on("a", 100), record_on("b", 101), record_on("c", 60)})},
                                      three_hosts, {.fleet = &fleet});
  EXPECT_EQ(state(checks, "a"), Fitness::pass);
  EXPECT_EQ(state(checks, "b"), Fitness::pass);
  EXPECT_EQ(state(checks, "c"), Fitness::fail);
  const HostCheck& slow = checks.at("c");
  EXPECT_EQ(slow.figure, 60);
  EXPECT_NEAR(*slow.floor, 87.8, 0.1);  // three hosts do not show how much hosts differ
  EXPECT_EQ(slow.unit, "FLOP/s");
  EXPECT_THAT(slow.repeat, ElementsAre(gemm_key));
  EXPECT_EQ(slow.culprits, (std::vector<FailedPart>{{"host", ""}}));  // a GPU, where it is one's figure
  ASSERT_EQ(slow.missed.size(), 1u);
  EXPECT_EQ(slow.missed.front().source, "a test");
  EXPECT_THAT(text(slow), HasSubstr("32 % below the floor"));
}

// `cases` products on `hosts` hosts, whose figures differ a little; one host's are `factor` times as high.
RunData many_cases(std::size_t hosts, std::size_t cases, const std::string& other = "", double factor = 1) {
  std::vector<Record> records;
  for (std::size_t c = 0; c < cases; ++c)
    for (std::size_t h = 0; h < hosts; ++h) {
      const std::string host = "n" + std::to_string(h + 1);
      const double noise = 0.005 * static_cast<double>((h * 7 + c * 3) % 9);
      records.push_back(
          record_on(host, 100 * (1 + noise) * (host == other ? factor : 1), "gemm/m=" + std::to_string(c)));
    }
  return each_host(std::move(records));
}

std::vector<std::string> numbered(std::size_t hosts) {
  std::vector<std::string> names;
  for (std::size_t h = 0; h < hosts; ++h) names.push_back("n" + std::to_string(h + 1));
  return names;
}

TEST(AcceptHost, ALossInAllCasesIsFoundWhereNoCaseAloneShowsIt) {
  const Floors fleet = floors_of(floor_of(0.95, true));
  ComparedHosts compared;
  const auto checks =
      judge_each_host({many_cases(12, 10, "n5", 0.955)}, numbered(12), {.fleet = &fleet, .power = &compared});
  for (const std::string& host : numbered(12))
    EXPECT_EQ(state(checks, host), host == "n5" ? Fitness::fail : Fitness::pass) << host << text(checks.at(host));
  EXPECT_THAT(text(checks.at("n5")), HasSubstr("all 10 cases together: 4."));
  EXPECT_EQ(checks.at("n5").repeat.size(), 10u);  // it is measured again before it counts
  EXPECT_EQ(compared.comparisons, 132u);
  ASSERT_EQ(compared.cases.size(), 11u);
  EXPECT_GT(compared.cases.front().found, compared.cases.front().limit);
  EXPECT_THAT(power_text(compared), HasSubstr("132 comparisons"));
  EXPECT_EQ(power_text({}), "");
}

TEST(AcceptHost, HostsThatDifferMuchAreNotHeldToTheMarginAlone) {
  // 6 % below the median of hosts that differ by 10 %.
  const Floors fleet = floors_of(floor_of(0.95, true));
  std::vector<Record> records;
  for (const double value : {100, 90, 110, 94, 106, 97, 103, 92, 108, 99, 101, 95})
    records.push_back(record_on("n" + std::to_string(records.size() + 1), value));
  const auto checks = judge_each_host({each_host(records)}, numbered(12), {.fleet = &fleet});
  for (const auto& [host, check] : checks) EXPECT_EQ(check.state, Fitness::pass) << host << text(check);
}

TEST(AcceptHost, OfTwoHalvesOfAFleetTheSlowerOneIsUnsure) {
  const Floors fleet = floors_of(floor_of(0.95, true));
  RunData run = many_cases(12, 1);
  for (std::size_t i = 6; i < 12; ++i) run.records[i].metrics.front().value = *run.records[i].metrics.front().value / 2;
  const auto checks = judge_each_host({run}, numbered(12), {.fleet = &fleet});
  EXPECT_EQ(state(checks, "n1"), Fitness::pass);
  EXPECT_EQ(state(checks, "n12"), Fitness::unsure);
  EXPECT_THAT(text(checks.at("n12")), HasSubstr("one of 6 of 12 that are slower than the others"));
}

TEST(AcceptHost, HostsOfTwoKindsAreComparedWithTheirOwn) {
  const Floors fleet = floors_of(floor_of(0.95, true));
  RunData run = many_cases(12, 4, "n2", 0.6);
  for (Record& record : run.records)
    if (record.ranks.front().host.size() > 2 || record.ranks.front().host > "n6")  // n7 to n12
      record.ranks.front().device = "AMD Zen 3", record.metrics.front().value = *record.metrics.front().value / 3;
  const auto checks = judge_each_host({run}, numbered(12), {.fleet = &fleet});
  for (const auto& [host, check] : checks)
    EXPECT_EQ(check.state, host == "n2" ? Fitness::fail : Fitness::pass) << host << text(check);
}

TEST(AcceptHost, WhatIsFastWhenRepeatedPasses) {
  const Floors fleet = floors_of(floor_of(0.95, true));
  const RunData first = each_host({record_on("a", 100), record_on("b", 101), record_on("c", 60)});
  EXPECT_EQ(
      state(judge_each_host({first, each_host({record_on("c", 99)}, "host-2")}, three_hosts, {.fleet = &fleet}), "c"),
      Fitness::pass);
  EXPECT_EQ(
      state(judge_each_host({first, each_host({record_on("c", 61)}, "host-2")}, three_hosts, {.fleet = &fleet}), "c"),
      Fitness::fail);
}

TEST(AcceptHost, TwoHostsHaveNoMedian) {
  const Floors fleet = floors_of(floor_of(0.95, true));
  const auto checks =
      judge_each_host({each_host({record_on("a", 100), record_on("b", 60)})}, {"a", "b"}, {.fleet = &fleet});
  EXPECT_EQ(state(checks, "b"), Fitness::pass);
}

TEST(AcceptHost, AWrongResultFailsAndIsNotRepeated) {
  const Floors fleet = floors_of(floor_of(0.95, true));
  Record bad = record_on("b", 50);
  bad.status = Status::failed;
  bad.checks = {wrong(std::vector<std::string>{"row 7"})};
  const auto checks =
      judge_each_host({each_host({record_on("a", 100), bad, record_on("c", 100)})}, three_hosts, {.fleet = &fleet});
  EXPECT_EQ(state(checks, "b"), Fitness::fail);
  EXPECT_THAT(text(checks.at("b")), HasSubstr("wrong result: " + gemm_key + ": wrong_elements (row 7)"));
  EXPECT_THAT(checks.at("b").repeat, IsEmpty());
  EXPECT_THAT(checks.at("b").broken, ElementsAre(gemm_key));
}

TEST(AcceptHost, WhatOnlyOneHostCannotDoIsItsFault) {
  Record broken = record_on("a", 0), skipped = record_on("b", 0);
  broken.status = Status::error, broken.reason = "host a: lost";
  skipped.status = Status::skipped, skipped.reason = "no GPU";
  const std::vector<std::string> five = {"a", "b", "c", "d", "e"};
  auto checks =
      judge_each_host({each_host({broken, record_on("b", 1), record_on("c", 1), record_on("d", 1)})}, five, {});
  EXPECT_EQ(state(checks, "a"), Fitness::fail);
  EXPECT_EQ(state(checks, "b"), Fitness::pass);
  EXPECT_EQ(state(checks, "e"), Fitness::fail);  // no record
  checks = judge_each_host({each_host({skipped, record_on("a", 1), record_on("c", 1)})}, three_hosts, {});
  EXPECT_EQ(state(checks, "b"), Fitness::fail);
  EXPECT_THAT(text(checks.at("b")), HasSubstr("no GPU"));
  // What breaks everywhere says nothing about a host, and what all skip is no fault.
  broken.ranks.front().host = "b";
  Record other = broken;
  other.ranks.front().host = "a";
  checks = judge_each_host({each_host({broken, other})}, {"a", "b"}, {});
  EXPECT_EQ(state(checks, "a"), Fitness::unsure);
}

TEST(AcceptHost, ARequiredFloorNeedsARecordOfEachHost) {
  Floor floor = floor_of(10);
  floor.required = true;
  const Floors user = floors_of(floor);
  Record skipped = record_on("b", 0);
  skipped.status = Status::skipped;
  const auto checks = judge_each_host({each_host({record_on("a", 100), skipped})}, {"a", "b"}, {.user = &user});
  EXPECT_EQ(state(checks, "a"), Fitness::pass);
  EXPECT_EQ(state(checks, "b"), Fitness::fail);
  EXPECT_THAT(text(checks.at("b")), HasSubstr("no usable record for the required floor"));
}

TEST(AcceptHost, AFloorThatNoHostIsJudgedByIsNotMeasuredAndNoHostsFault) {
  Floor here = floor_of(10), other_protocol = floor_of(10), skipped = floor_of(10), nowhere = floor_of(10);
  other_protocol.pointer = "/floors/1", other_protocol.protocol = {{"cache", "cold"}}, other_protocol.required = true;
  skipped.pointer = "/floors/2", skipped.key = "peak/*", skipped.required = true;
  nowhere.pointer = "/floors/3", nowhere.key = "gemm/m=128/*";
  const Floors user = {"f.json", "f", "", {here, other_protocol, skipped, nowhere}};
  Record no_amx = record_on("a", 0, "peak/x=1"), nor_here = record_on("b", 0, "peak/x=1");
  no_amx.status = nor_here.status = Status::skipped, no_amx.reason = nor_here.reason = "no AMX";
  UnmeasuredFloors unmeasured;
  unmeasured.expect(user, false);
  EXPECT_EQ(unmeasured.left().size(), 4u);
  const auto checks = judge_each_host({each_host({record_on("a", 100), record_on("b", 100), no_amx, nor_here})},
                                      {"a", "b"}, {.user = &user, .unmeasured = &unmeasured});
  EXPECT_EQ(state(checks, "a"), Fitness::pass);
  EXPECT_EQ(state(checks, "b"), Fitness::pass);
  ASSERT_EQ(unmeasured.left().size(), 3u);
  EXPECT_THAT(unmeasured.left()[0].reason, HasSubstr("the floor asks for cold"));
  EXPECT_THAT(unmeasured.left()[1].reason, HasSubstr("skipped: no AMX"));
  EXPECT_THAT(unmeasured.left()[2].reason, HasSubstr("matched no record; the nearest key is " + gemm_key));
  // A later stage does not hide what an earlier one said, and measures what it measures.
  (void)judge_world(run_of({world({"a", "b"})}), {"a", "b"}, {.user = &user, .unmeasured = &unmeasured});
  EXPECT_THAT(unmeasured.left()[1].reason, HasSubstr("skipped: no AMX"));
  (void)judge_world(run_of({world({"a", "b"}, "gemm/m=128/n=1")}), {"a", "b"},
                    {.user = &user, .unmeasured = &unmeasured});
  EXPECT_EQ(unmeasured.left().size(), 3u);  // it has no throughput
  Record measured = world({"a", "b"}, "gemm/m=128/n=1");
  measured.metrics = {metric("throughput", 50, "FLOP/s")};
  (void)judge_world(run_of({measured}), {"a", "b"}, {.user = &user, .unmeasured = &unmeasured});
  EXPECT_EQ(unmeasured.left().size(), 2u);
}

TEST(AcceptHost, TheReasonIsThatOfTheStageThatCameNearest) {
  Floors user = floors_of(floor_of(1));
  user.floors.front().key = "collective/op=all_reduce/*", user.floors.front().ranks = 32;
  UnmeasuredFloors unmeasured;
  unmeasured.expect(user, false);
  for (const char* key :
       {"collective/op=pairwise/bytes=1", collective_key.c_str(), "collective/op=broadcast/bytes=123456"})
    (void)judge_world(run_of({world({"a", "b"}, key)}), {"a", "b"}, {.user = &user, .unmeasured = &unmeasured});
  ASSERT_EQ(unmeasured.left().size(), 1u);
  EXPECT_EQ(unmeasured.left().front().reason, "1 record with this key, none with 32 ranks");
}

TEST(AcceptHost, AFloorAgainstTheMedianIsNotMeasuredOnTwoHosts) {
  Floors user = floors_of(floor_of(0.95, true));
  UnmeasuredFloors unmeasured;
  unmeasured.expect(user, false);
  const StageFloors floors = {.user = &user, .unmeasured = &unmeasured};
  (void)judge_each_host({each_host({record_on("a", 100), record_on("b", 60)})}, {"a", "b"}, floors);
  ASSERT_EQ(unmeasured.left().size(), 1u);
  EXPECT_THAT(unmeasured.left().front().reason, HasSubstr("fewer than three hosts have no median"));
  (void)judge_each_host({each_host({record_on("a", 100), record_on("b", 99), record_on("c", 99)})}, three_hosts,
                        floors);
  EXPECT_THAT(unmeasured.left(), IsEmpty());
}

TEST(AcceptHost, OfTheFloorsOfALevelOnlyThoseThatAreRequiredAreMissed) {
  Floor required = floor_of(0.95, true);
  required.required = true, required.pointer = "/floors/1";
  UnmeasuredFloors unmeasured;
  unmeasured.expect({"fleet.json", "fleet", "", {floor_of(0.95, true), required}}, true);
  ASSERT_EQ(unmeasured.left().size(), 1u);
  EXPECT_TRUE(unmeasured.left().front().floor.required);
}

TEST(AcceptHost, WhatEveryHostSkipsIsNoPass) {
  Record a = record_on("a", 0), b = record_on("b", 0);
  a.status = b.status = Status::skipped, a.reason = b.reason = "run it on one rank";
  auto checks = judge_each_host({each_host({a, b})}, {"a", "b"}, {});
  for (const char* host : {"a", "b"}) {
    EXPECT_EQ(state(checks, host), Fitness::unsure) << host;
    EXPECT_THAT(text(checks.at(host)), HasSubstr("every case was skipped: run it on one rank"));
  }
  // One of two hosts can: which of them is right is unknown.
  checks = judge_each_host({each_host({record_on("a", 1), b})}, {"a", "b"}, {});
  EXPECT_EQ(state(checks, "a"), Fitness::pass);
  EXPECT_EQ(state(checks, "b"), Fitness::unsure);
  // If some of several cases are skipped everywhere, they are named.
  EXPECT_EQ(skips_text(each_host({record_on("a", 1, "gemm/m=8"), a, b})),
            "1 of 2 cases skipped everywhere: gemm/m=64/n=64 (run it on one rank)");
  EXPECT_EQ(skips_text(each_host({record_on("a", 1), b})), "");
}

TEST(AcceptHost, HostsThatAreOneMachineAreJudgedAsADrill) {
  const Floors user = floors_of(floor_of(90));
  Record one = record_on("a", 60);
  one.flags = {"hosts are one machine", "oversubscribed"};
  one.comparable = false;
  const RunData run = each_host({one});
  EXPECT_EQ(state(judge_each_host({run}, {"a"}, {.user = &user}), "a"), Fitness::fail);
  EXPECT_THAT(why_drill({run}), ElementsAre(HasSubstr("a drill, no acceptance: hosts are one machine")));
}

TEST(AcceptWorld, FiguresAreToldWithoutFloors) {
  const WorldChecks judged = judge_world(run_of({world(three_hosts)}), three_hosts, {});
  ASSERT_EQ(judged.figures.size(), 1u);
  EXPECT_EQ(judged.figures.front().metric, "busbw");
  EXPECT_EQ(judged.figures.front().value, 1e9);
}

TEST(AcceptWorld, TheRankThatSeesAWrongSumIsNamedAndTheOthersRepeat) {
  Record record = world({"a", "b", "c", "d"});
  record.status = Status::failed;
  record.checks = {wrong(std::vector<Culprit>{{2}})};
  const WorldChecks checks = judge_world(run_of({record}), {"a", "b", "c", "d"}, {});
  EXPECT_EQ(state(checks.checks, "c"), Fitness::fail);
  EXPECT_NE(state(checks.checks, "a"), Fitness::fail);
  EXPECT_TRUE(checks.repeat);
}

TEST(AcceptWorld, ASenderToWhichSeveralPointIsNamed) {
  Record record = world({"a", "b", "c", "d", "e"});
  record.status = Status::failed;
  record.checks = {wrong(std::vector<Culprit>{{0, 2}, {1, 2}})};
  const auto checks = judge_world(run_of({record}), {"a", "b", "c", "d", "e"}, {}).checks;
  EXPECT_EQ(state(checks, "c"), Fitness::fail);
  EXPECT_NE(state(checks, "a"), Fitness::fail);
  EXPECT_NE(state(checks, "b"), Fitness::fail);
}

TEST(AcceptWorld, ASumThatIsWrongEverywhereFailsAll) {
  Record record = world(three_hosts);
  record.status = Status::failed;
  record.checks = {wrong(std::vector<Culprit>{{0}, {1}, {2}})};
  const WorldChecks checks = judge_world(run_of({record}), three_hosts, {});
  for (const std::string& host : three_hosts) EXPECT_EQ(state(checks.checks, host), Fitness::fail);
  EXPECT_FALSE(checks.repeat);
}

TEST(AcceptWorld, ALostHostIsNamedAndABreakWithoutCulpritIsInconclusive) {
  Record record = world(three_hosts);
  record.status = Status::error;
  record.reason = "x";
  record.failure = {.kind = FailureKind::lost_host, .rank = 1, .host = "b"};
  WorldChecks checks = judge_world(run_of({record}), three_hosts, {});
  EXPECT_EQ(state(checks.checks, "b"), Fitness::fail);
  EXPECT_TRUE(checks.repeat);
  record.failure = {.kind = FailureKind::out_of_memory, .rank = 1, .host = "b"};
  checks = judge_world(run_of({record}), three_hosts, {});
  for (const std::string& host : three_hosts) EXPECT_EQ(state(checks.checks, host), Fitness::unsure);
  EXPECT_FALSE(checks.repeat);
}

TEST(AcceptWorld, SeveralHostsAreNamedUnlessTheyAreMost) {
  Record record = world({"a", "b", "c", "d", "e"});
  record.status = Status::error;
  record.failure = {.kind = FailureKind::timeout, .hosts = {"b", "d", "elsewhere"}};
  const std::vector<std::string> all{"a", "b", "c", "d", "e"};
  WorldChecks checks = judge_world(run_of({record}), all, {});
  for (const std::string& host : all)
    EXPECT_EQ(state(checks.checks, host) == Fitness::fail, host == "b" || host == "d") << host;
  record.failure->hosts = {"a", "b", "c"};
  checks = judge_world(run_of({record}), all, {});
  for (const std::string& host : all) EXPECT_EQ(state(checks.checks, host), Fitness::unsure) << host;
}

TEST(AcceptWorld, AStragglerInMostCasesFailsAndOnceDoesNot) {
  Record slow = world(three_hosts);
  slow.slow_rank = {1, 2.1};
  const Record other = world(three_hosts, "collective/op=broadcast/bytes=8");
  EXPECT_EQ(state(judge_world(run_of({slow, other}), three_hosts, {}).checks, "b"), Fitness::pass);
  Record again = other;
  again.slow_rank = slow.slow_rank;
  const auto checks = judge_world(run_of({slow, again}), three_hosts, {}).checks;
  EXPECT_EQ(state(checks, "b"), Fitness::fail);
  EXPECT_EQ(state(checks, "a"), Fitness::pass);
}

TEST(AcceptWorld, AFloorOfTheWholeWorldIsOfAllUnlessOneHostHoldsItBack) {
  Floor floor = floor_of(2e9);
  floor.key = "collective/*", floor.metric = "busbw", floor.unit = "B/s";
  const Floors user = floors_of(floor);
  auto checks = judge_world(run_of({world(three_hosts)}), three_hosts, {.user = &user}).checks;
  for (const std::string& host : three_hosts) EXPECT_EQ(state(checks, host), Fitness::fail);
  EXPECT_THAT(text(checks.at("a")), HasSubstr("slowest: rank 0, host a, AMD Zen 5"));
  EXPECT_EQ(checks.at("a").culprit, "slowest: rank 0, host a, AMD Zen 5");
  Record one = world(three_hosts), two = world(three_hosts, "collective/op=broadcast/bytes=8");
  one.slow_rank = two.slow_rank = {1, 2.1};
  const WorldChecks with_straggler = judge_world(run_of({one, two}), three_hosts, {.user = &user});
  EXPECT_EQ(state(with_straggler.checks, "b"), Fitness::fail);
  EXPECT_EQ(state(with_straggler.checks, "a"), Fitness::pass);
  EXPECT_FALSE(with_straggler.checks.at("a").figure);
  EXPECT_TRUE(with_straggler.repeat);
}

}  // namespace
}  // namespace assay::fitness
