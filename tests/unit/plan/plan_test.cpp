#include "harness/plan/plan.h"

#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/json/json.h"
#include "harness/plan/estimate.h"
#include "tests/unit/plan/plan_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(PlanTest, ABareFamilyRunsTheCrossProductOfItsDefaults) {
  request_.targets = {"toy"};
  const Plan plan = expand();
  EXPECT_EQ(plan.name, "toy");
  EXPECT_THAT(keys(plan), ElementsAre("toy/op=read/bytes=4096/n=1/share=0.5/pause=0/on=false/threads=all/path=",
                                      "toy/op=write/bytes=4096/n=1/share=0.5/pause=0/on=false/threads=all/path="));
  EXPECT_EQ(plan.cases[0].ranks, 1);
  EXPECT_DOUBLE_EQ(plan.cases[0].estimate.bytes, 3 * 4096);
}

TEST_F(PlanTest, ListsAndRangesExpandInOrder) {
  const Plan plan = expand_cases(R"({"family":"pair","heads":[1,2],"width":[{"from":64,"to":100,"step":32},8]},
                                    {"family":"pair","heads":1,"width":{"from":2,"to":40,"factor":4}})");
  EXPECT_THAT(keys(plan), ElementsAre("pair/heads=1/width=8", "pair/heads=1/width=64", "pair/heads=1/width=96",
                                      "pair/heads=2/width=8", "pair/heads=2/width=64", "pair/heads=2/width=96",
                                      "pair/heads=1/width=2", "pair/heads=1/width=32"));
}

TEST_F(PlanTest, UnitsAreReadWhereverANumberHasOne) {
  const Plan plan = expand_cases(
      R"({"family":"toy","op":"copy","bytes":{"from":"1MiB","to":"64MiB","factor":8},"share":0.05,"pause":"20ms","on":true,"threads":2,
          "path":"/a/b","protocol":{"max_seconds":"500ms","target_relative_ci":"2%","min_samples":7,"data":"zeros"},"timeout":"2min"})");
  ASSERT_THAT(keys(plan),
              ElementsAre("toy/op=copy/bytes=1048576/n=1/share=0.05/pause=0.02/on=true/threads=2/path=/a/b",
                          "toy/op=copy/bytes=8388608/n=1/share=0.05/pause=0.02/on=true/threads=2/path=/a/b",
                          "toy/op=copy/bytes=67108864/n=1/share=0.05/pause=0.02/on=true/threads=2/path=/a/b"));
  Protocol protocol;
  plan.cases[0].protocol.apply(protocol);
  EXPECT_DOUBLE_EQ(protocol.max_seconds, 0.5);
  EXPECT_DOUBLE_EQ(protocol.target_relative_ci, 0.02);
  EXPECT_EQ(protocol.min_samples, 7);
  EXPECT_EQ(protocol.data, "zeros");
  EXPECT_DOUBLE_EQ(protocol.warmup_seconds, Protocol().warmup_seconds);
  EXPECT_DOUBLE_EQ(plan.cases[0].timeout_seconds, 120);
}

TEST_F(PlanTest, EntriesInheritAndOverride) {
  const Plan plan = expand_text(R"({"schema":1,"name":"x","ranks":[1,2],"seed":7,"timeout":30,"labels":{"who":"me"},
      "protocol":{"max_seconds":1,"min_samples":5},"cases":[{"family":"pair"},
      {"family":"pair","ranks":4,"seed":18446744073709551615,"timeout":"1min","protocol":{"max_seconds":2},"note":"why"}]})");
  ASSERT_EQ(plan.cases.size(), 3u);
  EXPECT_EQ(plan.name, "x");
  EXPECT_EQ(plan.labels.at("who"), "me");
  EXPECT_EQ(plan.cases[0].ranks, 1);
  EXPECT_EQ(plan.cases[1].ranks, 2);
  EXPECT_EQ(plan.cases[1].seed, 7u);
  EXPECT_EQ(plan.cases[2].ranks, 4);
  EXPECT_EQ(plan.cases[2].seed, UINT64_MAX);
  EXPECT_DOUBLE_EQ(plan.cases[2].timeout_seconds, 60);
  EXPECT_DOUBLE_EQ(*plan.cases[2].protocol.max_seconds, 2);
  EXPECT_EQ(*plan.cases[2].protocol.min_samples, 5);
  request_.ranks = {3};
  request_.timeout_seconds = 9;
  const Plan forced = expand();
  ASSERT_EQ(forced.cases.size(), 2u);  // seed 7 and the other; only ranks 3
  EXPECT_EQ(forced.cases[0].ranks, 3);
  EXPECT_DOUBLE_EQ(forced.cases[1].timeout_seconds, 9);
}

TEST_F(PlanTest, CommunicatingFamiliesRunAtEveryWorldSize) {
  limits_.world_sizes = {1, 2, 3};
  const auto ranks_of = [](const Plan& plan, std::string_view family) {
    std::vector<int> ranks;
    for (const PlannedCase& planned : plan.cases)
      if (planned.family->name == family) ranks.push_back(planned.ranks);
    return ranks;
  };
  const char* cases = R"("cases":[{"family":"pair"},{"family":"toy","op":"read"}]})";
  const Plan walked = expand_text(std::string(R"({"schema":1,"name":"x",)") + cases);
  EXPECT_THAT(ranks_of(walked, "pair"), ElementsAre(1, 2, 3));
  EXPECT_THAT(ranks_of(walked, "toy"), ElementsAre(1));
  const Plan said = expand_text(std::string(R"({"schema":1,"name":"x","ranks":2,)") + cases);
  EXPECT_THAT(ranks_of(said, "pair"), ElementsAre(2));
  EXPECT_THAT(ranks_of(said, "toy"), ElementsAre(2));
  request_.ranks = {4};
  EXPECT_THAT(ranks_of(expand(), "pair"), ElementsAre(4));
}

TEST_F(PlanTest, ACaseOfOneRankTakesOneWhateverIsAsked) {
  request_.ranks = {2, 8};
  std::vector<std::pair<std::string, int>> cases;
  for (const PlannedCase& one : expand_cases(R"({"family":"toy","op":["write","copy"]})").cases)
    cases.emplace_back(one.params.word("op"), one.ranks);
  EXPECT_THAT(cases, ElementsAre(std::pair("write", 2), std::pair("copy", 1), std::pair("write", 8)));
}

TEST_F(PlanTest, DuplicateCasesRunOnce) {
  EXPECT_EQ(expand_cases(
                R"({"family":"pair","heads":[2,2,1]},{"family":"pair","heads":2},{"family":"pair","heads":2,"seed":1})")
                .cases.size(),
            3u);
}

TEST_F(PlanTest, ParametersThatADeviceLacksAreCheckedAndLeftOut) {
  const std::string entry = R"({"family":"toy","op":"read","threads":[1,2],"gpus":["each","together"]})";
  EXPECT_THAT(keys(expand_cases(entry)),
              ElementsAre("toy/op=read/bytes=4096/n=1/share=0.5/pause=0/on=false/threads=1/path=",
                          "toy/op=read/bytes=4096/n=1/share=0.5/pause=0/on=false/threads=2/path="));
  request_.device = DeviceKind::cuda;
  EXPECT_THAT(keys(expand()), ElementsAre("toy/op=read/bytes=4096/n=1/share=0.5/pause=0/on=false/gpus=each/path=",
                                          "toy/op=read/bytes=4096/n=1/share=0.5/pause=0/on=false/gpus=together/path="));
  request_.device = DeviceKind::cpu;
  EXPECT_THAT(refusal(R"({"family":"toy","gpus":"togethr"})"), HasSubstr("did you mean \"together\"?"));
}

TEST_F(PlanTest, AFamilyThatTheDeviceCannotRunIsKept) {
  request_.targets = {"gpu_only"};
  EXPECT_EQ(expand().cases.size(), 1u);
  request_.device = DeviceKind::cuda;
  EXPECT_THAT(refusal_of_request(), HasSubstr("needs 888 PiB"));
}

// --- errors -------------------------------------------------------------------------------------------------------

TEST_F(PlanTest, AllErrorsOfAFileAreReported) {
  EXPECT_EQ(
      refusal(
          R"({"family":"toi"},{"family":"toy","bites":1,"op":"reed"},{"fam":"toy"},7,{"family":"pair","heads":0,"note":1})"),
      "p.json: /cases/0/family: unknown family \"toi\"; did you mean \"toy\"?\n"
      "p.json: /cases/1/bites: unknown key \"bites\"; did you mean \"bytes\"?\n"
      "p.json: /cases/1/op: \"reed\" is no value of \"op\"; did you mean \"read\"?\n"
      "p.json: /cases/2: \"family\" is missing\n"
      "p.json: /cases/3: must be an object, is an integer\n"
      "p.json: /cases/4/heads: 0 is too small for \"heads\": at least 1\n"
      "p.json: /cases/4/note: must be text, is an integer");
}

TEST_F(PlanTest, ValuesAreChecked) {
  const auto of = [&](const std::string& member) { return refusal("{\"family\":\"toy\"," + member + "}"); };
  EXPECT_THAT(of(R"("n":"1024")"), StartsWith("p.json: /cases/0/n: \"n\" must be an integer, is text"));
  EXPECT_THAT(of(R"("n":1.5)"), HasSubstr("must be an integer, is a fractional number"));
  EXPECT_THAT(of(R"("n":null)"), HasSubstr("is null"));
  EXPECT_THAT(of(R"("n":[])"), HasSubstr("/cases/0/n: \"n\" is an empty list"));
  EXPECT_THAT(of(R"("n":[1,[2]])"), HasSubstr("/cases/0/n/1: \"n\" must be an integer, is a list"));
  EXPECT_THAT(of(R"("n":-5)"), HasSubstr("-5 is too small"));
  EXPECT_THAT(of(R"("n":1000000000000001)"), HasSubstr("too large"));
  EXPECT_THAT(of(R"("n":18446744073709551615)"), HasSubstr("too large"));
  EXPECT_THAT(of(R"("bytes":0)"), HasSubstr("0 is too small for \"bytes\": at least 1"));
  EXPECT_THAT(of(R"("bytes":"-1MiB")"), HasSubstr("negative"));
  EXPECT_THAT(of(R"("bytes":"64Mi")"), HasSubstr("is not a size in bytes"));
  EXPECT_THAT(of(R"("bytes":true)"), HasSubstr("must be a size"));
  EXPECT_THAT(of(R"("share":1.5)"), HasSubstr("too large for \"share\": at most 1"));
  EXPECT_THAT(of(R"("share":"NaN")"), HasSubstr("is not a time"));
  EXPECT_THAT(of(R"("pause":"-1s")"), HasSubstr("negative"));
  EXPECT_THAT(of(R"("on":1)"), HasSubstr("must be true or false, is an integer"));
  EXPECT_THAT(of(R"("threads":0)"), HasSubstr("too small"));
  EXPECT_THAT(of(R"("threads":"al")"), HasSubstr("did you mean \"all\"?"));
  EXPECT_THAT(of(R"("threads":2.5)"), HasSubstr("a positive integer or one of: all, core"));
  EXPECT_THAT(of(R"("op":3)"), HasSubstr("must be one of: read, write, copy"));
  EXPECT_THAT(of(R"("path":"a\nb")"), HasSubstr("without control characters"));
  EXPECT_THAT(of(R"("ranks":[])"), HasSubstr("/cases/0/ranks: is an empty list"));
  EXPECT_THAT(of(R"("ranks":0)"), HasSubstr("too small"));
  EXPECT_THAT(of(R"("seed":-1)"), HasSubstr("/cases/0/seed"));
  EXPECT_THAT(of(R"("timeout":0)"), HasSubstr("must be above 0"));
  EXPECT_THAT(of(R"("protocol":{"max_second":1})"),
              HasSubstr("/cases/0/protocol/max_second: unknown key \"max_second\"; did you mean"));
  EXPECT_THAT(of(R"("protocol":{"data":"zeroes"})"), HasSubstr("did you mean \"zeros\"?"));
  EXPECT_THAT(of(R"("protocol":{"min_samples":0})"), HasSubstr("too small"));
  EXPECT_THAT(of(R"("protocol":{"target_relative_ci":2})"), HasSubstr("too large"));
}

TEST_F(PlanTest, RangesAreChecked) {
  const auto of = [&](const std::string& range) { return refusal("{\"family\":\"toy\",\"n\":" + range + "}"); };
  EXPECT_THAT(of(R"({"from":1,"to":8})"), HasSubstr("either \"factor\" or \"step\""));
  EXPECT_THAT(of(R"({"from":1,"to":8,"factor":2,"step":1})"), HasSubstr("either \"factor\" or \"step\""));
  EXPECT_THAT(of(R"({"from":1,"factor":2})"), HasSubstr("\"to\" is missing"));
  EXPECT_THAT(of(R"({"from":8,"to":1,"factor":2})"), HasSubstr("from 8 is above to 1"));
  EXPECT_THAT(of(R"({"from":1,"to":8,"factor":1})"), HasSubstr("/n/factor: 1 is too small: above 1"));
  EXPECT_THAT(of(R"({"from":1,"to":8,"factor":1.5})"), HasSubstr("must be an integer"));
  EXPECT_THAT(of(R"({"from":1,"to":8,"step":0})"), HasSubstr("too small"));
  EXPECT_THAT(of(R"({"from":0,"to":8,"step":1})"), HasSubstr("/n/from: 0 is too small"));
  EXPECT_THAT(of(R"({"from":1,"to":8,"stp":1})"), HasSubstr("did you mean \"step\"?"));
  EXPECT_THAT(refusal(R"({"family":"toy","op":{"from":1,"to":2,"step":1}})"), HasSubstr("is an object"));
  EXPECT_THAT(refusal(R"({"family":"toy","threads":{"from":1,"to":"all","step":1}})"),
              HasSubstr("from a number to a number"));
}

TEST_F(PlanTest, TopLevelMembersAreChecked) {
  const auto of = [&](const std::string& text) { return refusal_of([&] { expand_text(text); }); };
  EXPECT_EQ(of(""), "p.json: empty");
  EXPECT_EQ(of("[]"), "p.json: must be an object, is a list");
  EXPECT_EQ(of("{}"), "p.json: \"schema\" is missing");
  EXPECT_EQ(of(R"({"schema":2,"cases":7})"), "p.json: /schema: schema 2 is not known: this build reads schema 1");
  EXPECT_EQ(of(R"({"schema":1})"), "p.json: \"cases\" is missing");
  EXPECT_EQ(of(R"({"schema":1,"cases":[]})"), "p.json: /cases: is an empty list: nothing to run");
  EXPECT_EQ(of(R"({"schema":1,"cases":{}})"), "p.json: /cases: must be a list, is an object");
  EXPECT_THAT(of(R"({"schema":1,"name":"","cases":[{"family":"toy"}]})"), HasSubstr("/name: must not be empty"));
  EXPECT_THAT(of(R"({"schema":1,"labels":{"":"x","a":1},"cases":[{"family":"toy"}]})"),
              HasSubstr("/labels/a: must be text"));
}

TEST_F(PlanTest, TooManyCasesAreCountedWithoutExpanding) {
  EXPECT_EQ(refusal(R"({"family":"toy","n":{"from":1,"to":1000,"step":1},"bytes":{"from":1,"to":51,"step":1}})"),
            "p.json: /cases/0: the lists expand to 102000 cases; at most 100000 are allowed");
  EXPECT_EQ(
      refusal(
          R"({"family":"pair"},{"family":"toy","op":"read","n":{"from":1,"to":1000000000000,"step":1},"ranks":[1,2]})"),
      "p.json: /cases/1: the lists expand to 2000000000001 cases, 2000000000000 of them here; at most 100000 are "
      "allowed");
  EXPECT_THAT(
      refusal(
          R"({"family":"toy","share":{"from":1e-300,"to":1,"factor":1.0000000000001},"bytes":{"from":1,"to":"8PiB","step":1},
                          "n":{"from":1,"to":1000000000000000,"step":1}})"),
      HasSubstr("expand to"));
  EXPECT_THAT(refusal(R"({"family":"toy","op":"read","share":{"from":0,"to":1,"step":5e-324}})"),
              HasSubstr("expand to 1e+18"));
  limits_.max_cases = 2;
  EXPECT_EQ(refusal(R"({"family":"toy"})"), "");
  EXPECT_THAT(refusal(R"({"family":"toy","n":[1,2]})"), HasSubstr("4 cases; at most 2"));
}

TEST_F(PlanTest, SizesBeyondMemoryAreRefusedWithTheirBytes) {
  EXPECT_EQ(refusal(R"({"family":"toy","op":"read","bytes":["1MiB","1GiB"]})"),
            "p.json: /cases/0: toy/op=read/bytes=1073741824/n=1/share=0.5/pause=0/on=false/threads=all/path= needs 2 "
            "GiB (2147483648 bytes) "
            "of memory; this machine has 1 GiB (1073741824 bytes)");
  EXPECT_THAT(refusal(R"({"family":"toy","op":"read","bytes":"256MiB","ranks":4})"),
              HasSubstr(" on 4 ranks needs 2 GiB"));
  EXPECT_EQ(refusal(R"({"family":"toy","op":"read","bytes":"256MiB","ranks":2})"), "");
}

TEST_F(PlanTest, ValuesThatDoNotGoTogetherAreRefused) {
  EXPECT_EQ(refusal(R"({"family":"pair","heads":[3,4]})"),
            "p.json: /cases/0: pair/heads=3/width=64: heads do not divide the width");
  // One line per reason, however many cases and entries it affects.
  EXPECT_EQ(refusal(R"({"family":"toy"},{"family":"pair","heads":[2,3],"width":[62,64]},{"family":"pair","heads":5})"),
            "p.json: /cases/1: pair/heads=3/width=62 (and 2 more cases): heads do not divide the width");
}

// --- as stored in run.json -----------------------------------------------------------------------------------------

TEST_F(PlanTest, AnExpandedPlanReadsBack) {
  const std::string cases =
      R"({"family":"toy","share":[0.1,0.30000000000000004],"threads":[1,"core"],"seed":3,"protocol":{"max_seconds":"1s"}},
                               {"family":"pair","ranks":[1,2],"timeout":7})";
  const Plan plan = expand_cases(cases);
  const Json json = plan.expanded();
  const Plan back = plan_from_expanded(parse_json(json.dump(), "run.json"), "run.json", families_, 2, DeviceKind::cpu);
  EXPECT_EQ(back.expanded(), json);
  EXPECT_EQ(back.cases.size(), plan.cases.size());
  EXPECT_DOUBLE_EQ(back.cases[0].estimated_seconds, plan.cases[0].estimated_seconds);
  EXPECT_TRUE(same_work(json, expand_cases(cases).expanded()));
  request_.timeout_seconds = 99;
  EXPECT_TRUE(same_work(json, expand().expanded()));
  request_.ranks = {1};
  EXPECT_FALSE(same_work(json, expand().expanded()));
}

TEST_F(PlanTest, AnExpandedPlanOfAnotherBuildIsRefused) {
  const auto of = [&](const std::string& text) {
    return refusal_of(
        [&] { plan_from_expanded(parse_json(text, "run.json"), "run.json", families_, 2, DeviceKind::cpu); });
  };
  EXPECT_EQ(
      of(R"({"schema":1,"name":"x","cases":[{"key":"old/a=1","family":"old","params":{"a":1},"ranks":1,"seed":0}]})"),
      "run.json: /plan/cases/0/family: this build has no family \"old\"");
  EXPECT_THAT(
      of(R"({"schema":1,"name":"x","cases":[{"key":"pair/heads=1","family":"pair","params":{"heads":1,"w":2},"ranks":1,"seed":0}]})"),
      HasSubstr("/plan/cases/0/params/w: unknown key"));
  EXPECT_THAT(
      of(R"({"schema":1,"name":"x","cases":[{"key":"pair/heads=2","family":"pair","params":{"heads":1},"ranks":1,"seed":0}]})"),
      HasSubstr("/plan/cases/0/key"));
  EXPECT_THAT(of(R"({"schema":9})"), HasSubstr("schema 9 is not known"));
}

// --- estimates and garbage -----------------------------------------------------------------------------------------

TEST_F(PlanTest, EstimatesFollowTheProtocol) {
  const double one = expand_cases(R"({"family":"pair","protocol":{"max_seconds":1}})").cases[0].estimated_seconds;
  const double four = expand_cases(R"({"family":"pair","protocol":{"max_seconds":4}})").cases[0].estimated_seconds;
  EXPECT_DOUBLE_EQ(four - one, 3);
  EXPECT_GT(one, 1);
}

TEST_F(PlanTest, EstimatesKnowTheDevice) {
  const std::string cases = R"({"family":"toy","bytes":"128MiB","protocol":{"max_seconds":1}})";
  request_.device = DeviceKind::cuda;
  const Plan plan = expand_cases(cases);
  const Json json = plan.expanded();
  const auto resumed = [&](DeviceKind device) {
    return plan_from_expanded(json, "run.json", families_, 2, device).cases[0].estimated_seconds;
  };
  EXPECT_DOUBLE_EQ(resumed(DeviceKind::cuda), plan.cases[0].estimated_seconds);
  EXPECT_LT(resumed(DeviceKind::cuda), resumed(DeviceKind::cpu));
}

// A plan with some changed bytes or values is either accepted or refused with UsageError.
TEST_F(PlanTest, MutatedPlansNeverBreak) {
  const std::string good =
      R"({"schema":1,"name":"x","ranks":[1,2],"seed":1,"protocol":{"max_seconds":"1s"},"labels":{"a":"b"},"cases":[)"
      R"({"family":"toy","op":["read"],"bytes":{"from":"1KiB","to":"4KiB","factor":2},"share":[0.5],"on":true,"threads":"all","path":"p"},)"
      R"({"family":"pair","heads":[1,2],"width":{"from":8,"to":16,"step":8},"timeout":3}]})";
  const std::vector<std::string> values = {"null",
                                           "-1",
                                           "0",
                                           "1e308",
                                           "-1e-308",
                                           "9223372036854775807",
                                           "18446744073709551615",
                                           "\"\"",
                                           "[]",
                                           "{}",
                                           "true",
                                           "1.5",
                                           "\"1PiB\"",
                                           "[[[]]]",
                                           "{\"from\":1}",
                                           "\"\\u0000\"",
                                           "{\"from\":1,\"to\":9223372036854775807,\"factor\":9223372036854775807}",
                                           "{\"from\":1,\"to\":9223372036854775807,\"step\":9223372036854775806}"};
  const Rng rng(11, "plans");
  int accepted = 0, refused = 0;
  for (std::uint64_t trial = 0; trial < 1500; ++trial) {
    std::string text = good;
    const auto draw = [&](std::uint64_t i, std::uint64_t bound) { return rng.below(trial * 64 + i, bound); };
    if (trial % 3 == 0) {
      for (std::uint64_t i = 0; i < 1 + draw(0, 3); ++i)
        text[draw(2 * i + 1, text.size())] = static_cast<char>(draw(2 * i + 2, 256));
    } else {
      // Replaces some value by another of any kind.
      std::vector<std::size_t> colons;
      for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == ':') colons.push_back(i + 1);
      const std::size_t start = colons[draw(0, colons.size())];
      int depth = 0;
      std::size_t end = start;
      for (; end < text.size(); ++end) {
        if (text[end] == '{' || text[end] == '[') ++depth;
        if ((text[end] == ',' && depth == 0) || ((text[end] == '}' || text[end] == ']') && depth-- == 0)) break;
      }
      text.replace(start, end - start, values[draw(1, values.size())]);
    }
    try {
      expand_text(text);
      ++accepted;
    } catch (const UsageError& error) {
      ++refused;
      EXPECT_THAT(error.what(), HasSubstr("p.json")) << text;
    }
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 400);
}

}  // namespace
}  // namespace assay
