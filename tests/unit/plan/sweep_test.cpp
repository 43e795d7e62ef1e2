// Sweeps: which values a plan takes, and where it ends; parameters that stay out of keys at their default.
#include "harness/plan/plan.h"

#include "harness/json/json.h"
#include "tests/support/refusal.h"
#include "tests/unit/plan/fake_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Sweep : public testing::Test {
 protected:
  Plan expand(const std::string& family, std::vector<std::string> sets) {
    PlanRequest request;
    request.targets = {family};
    request.sets = std::move(sets);
    request.ranks = ranks_;
    return expand_plan(request, families_, limits_);
  }
  std::string refusal(const std::string& family, std::vector<std::string> sets) {
    return test::refusal([&] { expand(family, std::move(sets)); });
  }
  // Values of a parameter, "*" before those that do not fit.
  std::vector<std::string> values(const Plan& plan, const char* name) {
    std::vector<std::string> all;
    for (const PlannedCase& planned : plan.cases)
      all.push_back((planned.unfit.empty() ? "" : "*") + planned.params.word(name));
    return all;
  }

  std::vector<Family> families_ = fake_families();
  PlanLimits limits_{.memory_bytes = 10000};
  std::vector<int> ranks_;
};

TEST_F(Sweep, EndsAtTheFirstValueThatDoesNotFit) {
  const Plan plan = expand("toy", {"toy.op=read", "toy.bytes=sweep"});
  EXPECT_THAT(values(plan, "bytes"), ElementsAre("1024", "2048", "4096", "*8192"));
  EXPECT_EQ(plan.cases.back().unfit,
            "does not fit: 16384 bytes are planned (16 KiB), 10000 bytes are usable (9.77 KiB)");
  for (const PlannedCase& planned : plan.cases) EXPECT_EQ(planned.sweep, "bytes");
  EXPECT_THAT(plan.cases[0].key, HasSubstr("bytes=1024/")) << "as if it had been given";
  limits_.memory_bytes = 0;  // unknown
  EXPECT_THAT(values(expand("toy", {"toy.op=read", "toy.bytes=sweep"}), "bytes"),
              ElementsAre("1024", "2048", "4096", "8192", "16384"));
}

TEST_F(Sweep, RanksShareTheMemory) {
  ranks_ = {1, 2};
  EXPECT_THAT(values(expand("toy", {"toy.op=read", "toy.bytes=sweep"}), "bytes"),
              ElementsAre("1024", "2048", "4096", "*8192", "1024", "2048", "*4096"));
}

TEST_F(Sweep, OfEachCombinationOfTheOthers) {
  const Plan plan = expand("toy", {"toy.op=read,write", "toy.n=1,2", "toy.bytes=sweep"});
  EXPECT_EQ(plan.cases.size(), 16u);
}

TEST_F(Sweep, LeavesOutValuesThatDoNotGoTogether) {
  EXPECT_THAT(values(expand("pair", {"pair.heads=sweep"}), "heads"), ElementsAre("1", "2", "4"));
}

TEST_F(Sweep, IsRefused) {
  EXPECT_EQ(refusal("toy", {"toy.n=sweep"}), "--set toy.n=sweep: \"n\" has no sweep; of toy these have: bytes");
  EXPECT_EQ(refusal("gpu_only", {"gpu_only.bytes=sweep"}),
            "--set gpu_only.bytes=sweep: \"bytes\" has no sweep; of gpu_only no parameter has one");
  EXPECT_THAT(refusal("toy", {"toy.bytes=sweep,4096"}), HasSubstr("sweep"));
  families_[0].params[2].sweep = {1, 2};
  EXPECT_THAT(refusal("toy", {"toy.n=sweep", "toy.bytes=sweep"}), HasSubstr("sweeps both \"bytes\" and \"n\""));
  limits_.memory_bytes = 2000;  // not even the first
  EXPECT_THAT(refusal("toy", {"toy.op=read", "toy.bytes=sweep"}), HasSubstr("needs 2 KiB (2048 bytes) of memory"));
  families_[1].params[0].sweep = {3, 5};
  EXPECT_THAT(refusal("pair", {"pair.heads=sweep"}), HasSubstr("heads do not divide the width"));
}

TEST_F(Sweep, IsKeptInTheRun) {
  const Plan plan = expand("toy", {"toy.op=read", "toy.bytes=sweep"});
  const Plan again = plan_from_expanded(plan.expanded(), "run.json", families_, 1, DeviceKind::cpu);
  EXPECT_EQ(again.expanded(), plan.expanded());
  EXPECT_EQ(again.cases.back().unfit, plan.cases.back().unfit);
  limits_.memory_bytes = 9000;  // another machine
  EXPECT_TRUE(same_work(expand("toy", {"toy.op=read", "toy.bytes=sweep"}).expanded(), plan.expanded()));
}

TEST_F(Sweep, AParameterMayStayOutOfKeysAtItsDefault) {
  const Plan plan = expand("pair", {"pair.late=0,1"});
  ASSERT_EQ(plan.cases.size(), 2u);
  EXPECT_EQ(plan.cases[0].key, "pair/heads=4/width=64");
  EXPECT_EQ(plan.cases[1].key, "pair/heads=4/width=64/late=1");
}

}  // namespace
}  // namespace assay
