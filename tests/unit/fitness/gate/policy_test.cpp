// A site's policy for gates: what it says of a problem, suspicions that add up, and the fuse of the fleet.
#include "harness/fitness/gate/policy.h"

#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/fitness/gate/decision.h"
#include "harness/fitness/gate/fuse.h"
#include "harness/process/ask.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace assay::gate {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Policies : public testing::Test {
 protected:
  Policy read(const std::string& text) {
    replace_file(folder_.path() / "policy.json", text);
    return read_policy(folder_.path() / "policy.json", catalogue_);
  }
  std::string refused(const std::string& text) {
    return test::refusal([&] { read(text); });
  }

  test::TemporaryFolder folder_;
  Catalogue catalogue_ = load_catalogue(std::filesystem::path(ASSAY_SOURCE) / "configs/gate.json");
};

TEST_F(Policies, AreRead) {
  const Policy policy = read(
      R"({"nic-down":"drain","ASSAY-SYS-002":"ok","suspect":{"times":3,"within":"7d","then":"drain"},"at_most":"5% in 1h",
          "shared":"/shared/gate","hosts":64})");
  EXPECT_EQ(policy.severities.at("nic-down"), Severity::fault);
  EXPECT_EQ(policy.severities.at(catalogue_.find("ASSAY-SYS-002")->id), Severity::info);
  EXPECT_EQ(policy.suspect->times, 3u);
  EXPECT_EQ(policy.suspect->within_seconds, 7 * 86400);
  EXPECT_EQ(policy.at_most->share, 0.05);
  EXPECT_EQ(policy.at_most->within_seconds, 3600);
  EXPECT_EQ(policy.at_most->fleet, 64u);
  EXPECT_EQ(policy.at_most->shared, "/shared/gate");
  EXPECT_EQ(read(R"({"at_most":"3 in 30min"})").at_most->count, 3u);
  EXPECT_FALSE(read("{}").at_most);
}

TEST_F(Policies, BadOnesAreRefusedWithTheNearestChoice) {
  EXPECT_THAT(refused(R"({"nic-dawn":"drain"})"), AllOf(HasSubstr("/nic-dawn"), HasSubstr("nic-down")));
  EXPECT_THAT(refused(R"({"nic-down":"drian"})"), AllOf(HasSubstr("/nic-down"), HasSubstr("drain")));
  EXPECT_THAT(refused(R"({"suspect":{"times":0,"within":"7d","then":"ok"}})"),
              AllOf(HasSubstr("/suspect/times"), HasSubstr("/suspect/then")));
  EXPECT_THAT(refused(R"({"suspect":{"times":3}})"), HasSubstr("within"));
  for (const char* text :
       {"5%", "5% in", "0% in 1h", "200% in 1h", "0 in 1h", "-1 in 1h", "5% in 0s", "", "some in 1h"})
    EXPECT_THAT(refused(fmt::format(R"({{"at_most":"{}"}})", text)), HasSubstr("/at_most")) << text;
  EXPECT_THAT(refused(R"({"shared":"/x"})"), HasSubstr("at_most"));
  EXPECT_THAT(refused("[]"), HasSubstr("object"));
}

TEST_F(Policies, SeveritiesReplaceThoseOfTheCatalogueButNotForDevicesOfOthers) {
  apply(read(R"({"nic-down":"drain","gpu-hot":"drain","xid-fatal":"ok"})"), catalogue_);
  const auto severity_of = [&](Finding problem) {
    return decide({.audited = true, .problems = {std::move(problem)}, .tests = {}}, {{"0000:1b:00.0"}}, catalogue_)
        .findings.front()
        .severity;
  };
  EXPECT_EQ(severity_of({"nic-down", Severity::warning, "x"}), Severity::fault);
  EXPECT_EQ(severity_of({"xid-fatal", Severity::fault, "x"}), Severity::info);
  Finding hot{"gpu-hot", Severity::warning, "x"};
  hot.device = "0000:1b:00.0";
  EXPECT_EQ(severity_of(hot), Severity::info);
  hot.device = "0000:2b:00.0";
  EXPECT_EQ(severity_of(hot), Severity::fault);
}

TEST_F(Policies, AProfileLeavesTestsOut) {
  EXPECT_EQ(catalogue_.use_profile("health").tests, (std::set<std::string>{"audit"}));
  for (const gate::Test* test : catalogue_.choose(60, true)) EXPECT_EQ(test->name, "audit");
  EXPECT_TRUE(unseen({{.test = "gpu-gemm", .device = "0000:1b:00.0"}}, catalogue_).empty());
  EXPECT_FALSE(unseen({{.test = "audit"}}, catalogue_).empty());
  (void)catalogue_.use_profile("idle");
  EXPECT_GT(catalogue_.choose(60, true).size(), 5u);
  EXPECT_THAT(test::refusal([&] { (void)catalogue_.use_profile("prolg"); }), HasSubstr("prolog"));
}

class Fuses : public testing::Test {
 protected:
  FuseAnswer ask(const std::string& host, bool drain = true, std::time_t now = 1'000'000) {
    return ask_fuse(most_, host, now, drain, 10);
  }
  FuseAnswer reset() { return reset_fuse(Policy{.file = "p", .at_most = most_}); }

  test::TemporaryFolder folder_;
  AtMost most_{.text = "2 in 1h", .count = 2, .within_seconds = 3600, .shared = folder_.path() / "new"};
};

TEST_F(Fuses, BeyondTheLimitNothingDrainsUntilItIsReset) {
  EXPECT_FALSE(ask("a").blown);
  EXPECT_FALSE(ask("b").blown);
  EXPECT_FALSE(ask("b").blown) << "it is counted once";
  EXPECT_FALSE(ask("c", false).blown);
  const FuseAnswer third = ask("c");
  EXPECT_TRUE(third.blown && third.alarm);
  EXPECT_EQ(third.by, "c");
  EXPECT_EQ(third.drains, 3u);
  EXPECT_EQ(third.since, "1970-01-12T13:46:40Z");
  const FuseAnswer later = ask("a", true, 2'000'000);
  EXPECT_TRUE(later.blown);
  EXPECT_FALSE(later.alarm) << "one alarm";
  EXPECT_TRUE(reset().blown);
  EXPECT_FALSE(reset().blown);
  EXPECT_FALSE(ask("d").blown);
  EXPECT_FALSE(ask("e").blown);
  EXPECT_TRUE(ask("f").alarm);
}

TEST_F(Fuses, DrainsAreForgottenAfterTheTime) {
  for (const char* host : {"a", "b", "c", "d"}) {
    static std::time_t now = 1'000'000;
    EXPECT_FALSE(ask(host, true, now += 1801).blown) << host;
  }
}

TEST_F(Fuses, AShareIsOfTheHostsThatAskOrOfThoseNamed) {
  most_.share = 0.05;
  for (int i = 0; i < 40; ++i) (void)ask(fmt::format("n{}", i), false);
  EXPECT_EQ(ask("n0").allowed, 2u);
  EXPECT_EQ(ask("n0").hosts, 40u);
  most_.fleet = 64;
  EXPECT_EQ(ask("n0").allowed, 3u);
  most_.fleet = 3;
  EXPECT_EQ(ask("n0").allowed, 1u);
}

TEST_F(Fuses, OfManyAtOnceNoMoreThanTheLimitDrainAndOneRaisesTheAlarm) {
  std::vector<std::function<std::string()>> gates;
  for (int i = 0; i < 16; ++i)
    gates.emplace_back([this, i] {
      const FuseAnswer answer = ask(fmt::format("n{}", i));
      return std::string(!answer.problem.empty() ? answer.problem
                         : answer.alarm          ? "alarm"
                         : answer.blown          ? "no"
                                                 : "drain");
    });
  std::vector<std::string> said;
  for (const ChildAnswer& one : ask_children(gates, 60)) said.push_back(one.text.value_or(one.problem));
  EXPECT_EQ(std::ranges::count(said, "drain"), 2);
  EXPECT_EQ(std::ranges::count(said, "alarm"), 1);
  EXPECT_EQ(std::ranges::count(said, "no"), 13);
}

TEST_F(Fuses, AFolderThatCannotBeUsedIsSaid) {
  replace_file(folder_.path() / "file", "x");
  most_.shared = folder_.path() / "file";
  EXPECT_THAT(ask("a").problem, HasSubstr("file"));
  most_.shared = folder_.path();
  replace_file(folder_.path() / "fuse.json", "{\"hosts\": 3}");
  EXPECT_THAT(ask("a").problem, HasSubstr("fuse.json"));
  EXPECT_THROW((void)reset(), Error);
  EXPECT_THROW((void)reset_fuse(std::nullopt), UsageError);
}

}  // namespace
}  // namespace assay::gate
