// Acceptance of a cluster: ports that did not carry their rails.
#include "harness/record/flags.h"
#include "tests/unit/fitness/cluster/judge_support.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay::fitness {
namespace {

using test::run_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Rails of three hosts with two ports each; the last port of b carried this share.
Record rails_of_ports(double share) {
  Record record = world(three_hosts, "collective/op=rails/bytes=1048576");
  for (const std::string& host : three_hosts)
    for (const int port : {2, 3})
      record.ports.push_back(
          {host, fmt::format("mlx5_{} port 1", port), 1e9, 1e9, host == "b" && port == 3 ? share : 1.01});
  return record;
}

TEST(AcceptPorts, OneThatDidNotCarryItsRailFailsItsHost) {
  Record more = rails_of_ports(0.5);
  more.key = "collective/op=rails/bytes=16777216";
  const auto checks = judge_world(run_of({rails_of_ports(0.12), more}), three_hosts, {}).checks;
  EXPECT_EQ(state(checks, "b"), Fitness::fail);
  EXPECT_THAT(checks.at("b").culprits, ElementsAre(FailedPart{"port", "mlx5_3"}));
  EXPECT_THAT(checks.at("b").evidence,
              ElementsAre("collective/op=rails/bytes=1048576: mlx5_3 port 1 carried 12 % of what "
                          "its rail sent (80 % at least)"));
  for (const char* other : {"a", "c"}) EXPECT_EQ(state(checks, other), Fitness::pass) << other;
  EXPECT_EQ(state(judge_world(run_of({rails_of_ports(0.97)}), three_hosts, {}).checks, "b"), Fitness::pass);
}

TEST(AcceptPorts, ThatNothingToldOfAreNoted) {
  Record record = world(three_hosts, "collective/op=rails/bytes=1048576"), other = record;
  other.key = "collective/op=rails/bytes=8";
  for (Record* one : {&record, &other}) one->flags.emplace_back(flag::unproven_rails);
  const WorldChecks world = judge_world(run_of({record, other}), three_hosts, {});
  EXPECT_EQ(world.note, flag::unproven_rails);
  EXPECT_EQ(state(world.checks, "a"), Fitness::pass);
  EXPECT_THAT(judge_world(run_of({rails_of_ports(1)}), three_hosts, {}).note, IsEmpty());
}

TEST(AcceptPorts, TheirErrorsAreARemarkAndStandInTheEvidenceOfOneThatFails) {
  const auto evidence_with = [](double share) {
    Record record = rails_of_ports(share);
    record.errors = {{"b", "mlx5_3 port 1", "symbol_error", 17},
                     {"b", "mlx5_3 port 1", "symbol_error", 3},
                     {"b", "mlx5_3 port 1", "local_ack_timeout_err", 4},
                     {"b", "mc0", "ce", 1}};
    return judge_world(run_of({record}), three_hosts, {}).checks.at("b");
  };
  const std::string line =
      "errors that its ports counted meanwhile: mlx5_3 port 1 local_ack_timeout_err 4, mlx5_3 port 1 symbol_error 20";
  EXPECT_EQ(evidence_with(1).state, Fitness::pass);
  EXPECT_THAT(evidence_with(1).evidence, ElementsAre(line));
  EXPECT_THAT(evidence_with(0).evidence, ElementsAre(HasSubstr("mlx5_3 port 1 carried 0.0 %"), line));
}

}  // namespace
}  // namespace assay::fitness
