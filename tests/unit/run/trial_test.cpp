// Trials as children: this program plays the part of `assay run`, and does what the name of its plan says.
#include "harness/run/trial.h"
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/json/members.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* started = "2026-01-01T00:00:00Z";

std::string value_of(int argc, char** argv, std::string_view flag) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == flag) return argv[i + 1];
  return {};
}

int play(int argc, char** argv) {
  const std::string plan = argc > 2 ? argv[2] : "";
  const std::string out = value_of(argc, argv, "--out"), ended = value_of(argc, argv, "--ended");
  std::fprintf(stderr, "says %s\n", plan.c_str());
  if (plan == "hangs")
    for (;;) ::pause();
  if (plan == "dies") std::abort();
  if (plan == "refuses") return 2;
  if (plan == "loses") {
    replace_file(ended, dump_document(json_of(Ended{"host b cannot be reached: x", {"b"}})));
    return 4;
  }
  Record record;
  record.key = plan;
  record.family = "probe";
  Json run = {{"schema", record_schema}, {"started", started}, {"finished", plan == "stops" ? Json() : Json(started)}};
  if (plan == "goes-on-without") run["ended"] = json_of(Ended{"host c is lost: x", {"c"}});
  write_run(out, [&](const std::function<void(Record)>& add) {
    add(record);
    return run;
  });
  std::printf("printed\n");
  return plan == "stops" ? 3 : 0;
}

class TrialsAsChildren : public testing::Test {
 protected:
  Trial trial(const std::string& plan) const { return {.plan = {plan}, .out = folder_.path() / plan}; }
  std::vector<TrialResult> run(const std::vector<Trial>& trials) {
    static ChildTrials children("the trials");
    return children.run(trials);
  }
  TrialResult run(const std::string& plan) { return std::move(run(std::vector{trial(plan)}).front()); }

  test::TemporaryFolder folder_;
};

TEST_F(TrialsAsChildren, AFinishedRunIsRead) {
  const TrialResult result = run("finishes");
  EXPECT_FALSE(result.failure || result.ended);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.output, "printed\n");
  EXPECT_THAT(result.errors, HasSubstr("says finishes"));
  ASSERT_TRUE(result.run);
  EXPECT_EQ(result.run->records.at(0).key, "finishes");
}

TEST_F(TrialsAsChildren, WhatDidNotComeToItsEndSaysWhy) {
  Trial hanging = trial("hangs");
  hanging.deadline = 0.2;
  const std::vector<TrialResult> all = run({hanging, trial("dies"), trial("refuses"), trial("stops")});
  EXPECT_EQ(all.at(0).failure->kind, FailureKind::timeout);
  EXPECT_EQ(all.at(1).failure->kind, FailureKind::crashed);
  EXPECT_EQ(all.at(2).failure->kind, FailureKind::refused);
  EXPECT_FALSE(all.at(0).run || all.at(1).run || all.at(2).run);
  EXPECT_FALSE(all.at(3).failure);
  EXPECT_FALSE(all.at(3).complete);
  EXPECT_TRUE(all.at(3).run);
}

TEST_F(TrialsAsChildren, LostHostsAreNamedWithAndWithoutADirectory) {
  const TrialResult none = run("loses");
  EXPECT_FALSE(none.run);
  ASSERT_TRUE(none.ended);
  EXPECT_THAT(none.ended->lost, ElementsAre("b"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  const TrialResult some = run("goes-on-without");
  ASSERT_TRUE(some.ended);
  EXPECT_THAT(some.ended->lost, ElementsAre("c"));
  EXPECT_TRUE(some.complete);
}

TEST(Trial, ItsWordsAreThoseOfAssayRun) {
  Trial trial{.plan = {"gate"}, .filter = "^gemm/", .device = "cpu", .ranks = 4, .hosts = "a:1,b:1", .out = "o"};
  trial.each_host = true;
  trial.inject = "oom";
  EXPECT_THAT(words_of(trial, false),
              ElementsAre("run", "gate", "--filter", "^gemm/", "--device", "cpu", "--out", "o", "--ranks", "4",
                          "--each-host", "--inject", "oom", "--hosts", "a:1,b:1", "--ended", "o.ended.json"));
  EXPECT_THAT(words_of(trial, true),
              ElementsAre("run", "--resume", "o", "--hosts", "a:1,b:1", "--ended", "o.ended.json"));
  trial.command = {"gate-test", "audit"};
  EXPECT_THAT(words_of(trial, false), ElementsAre("gate-test", "audit"));
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "run") return assay::play(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
