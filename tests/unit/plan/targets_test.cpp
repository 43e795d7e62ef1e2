// What is asked for on the command line: targets, their parameters, filters.
#include "tests/unit/plan/plan_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(PlanTest, TargetsAreNamesFilesOrFamilies) {
  write("plans/quick.json", R"({"schema":1,"cases":[{"family":"pair"}]})");
  request_.targets = {"quick", "toy"};
  const Plan plan = expand();
  EXPECT_EQ(plan.name, "quick+toy");
  EXPECT_EQ(plan.cases.size(), 3u);
  request_.targets = {"quik"};
  EXPECT_EQ(refusal_of_request(), "\"quik\" is neither a plan, a family, a model nor a file; did you mean \"quick\"?");
  request_.targets = {"zzz"};
  EXPECT_EQ(refusal_of_request(),
            "\"zzz\" is neither a plan, a family, a model nor a file; valid: quick, toy, pair, gpu_only");
  fs::create_directories(dir_ / "models");
  write("models/llama-1b.json", R"({"schema":1,"family":"llama"})");
  request_.targets = {"llama-1c"};
  EXPECT_THAT(refusal_of_request(), HasSubstr("did you mean \"llama-1b\"?"));
  request_.targets = {"./none.json"};
  EXPECT_EQ(refusal_of_request(), "./none.json: no such file");
  request_.targets = {};
  EXPECT_THAT(refusal_of_request(), StartsWith("nothing to run"));
}

TEST_F(PlanTest, APlanForOneKindOfDeviceIsRefusedOnAnother) {
  write("plans/quick.json", R"({"schema":1,"cases":[{"family":"pair"}]})");
  write("plans/gpu-quick.json", R"({"schema":1,"name":"gpu-quick","device":"cuda","cases":[{"family":"pair"}]})");
  write("plans/gpu-only.json", R"({"schema":1,"name":"gpu-only","device":"cuda","cases":[{"family":"pair"}]})");
  request_.targets = {"gpu-quick"};
  EXPECT_EQ(refusal_of_request(), "the plan \"gpu-quick\" is for GPUs, and this run is on a CPU: assay run quick");
  request_.targets = {"gpu-only"};
  EXPECT_THAT(refusal_of_request(), HasSubstr("run it where --device cuda is possible"));
  request_.device = DeviceKind::cuda;
  EXPECT_EQ(expand().cases.size(), 1u);
  write("plans/odd.json", R"({"schema":1,"device":"tpu","cases":[{"family":"pair"}]})");
  request_.targets = {"odd"};
  EXPECT_THAT(refusal_of_request(), HasSubstr("/device"));
}

TEST_F(PlanTest, SetOverridesEveryEntryOfAFamily) {
  request_.sets = {"toy.bytes=1KiB,2KiB", "toy.op=copy",   "toy.threads=1,all",
                   "toy.on=true",         "toy.pause=5ms", "toy.path=a\\,b"};
  const Plan plan = expand_cases(R"({"family":"toy"},{"family":"pair"},{"family":"toy","bytes":7,"n":2})");
  EXPECT_EQ(plan.cases.size(), 9u);
  EXPECT_EQ(plan.cases[1].key, "toy/op=copy/bytes=1024/n=1/share=0.5/pause=0.005/on=true/threads=all/path=a,b");
  EXPECT_EQ(plan.cases[8].key, "toy/op=copy/bytes=2048/n=2/share=0.5/pause=0.005/on=true/threads=all/path=a,b");
}

TEST_F(PlanTest, OneSetMayAssignSeveralParameters) {
  request_.sets = {"toy.op=copy,toy.n=1,2,toy.bytes=1024,2048,toy.path=a,b.c\\,toy.n=3"};
  std::set<std::string> paths;
  const Plan plan = expand_cases(R"({"family":"toy","threads":1})");
  EXPECT_EQ(plan.cases.size(), 8u);
  for (const PlannedCase& each : plan.cases) paths.insert(each.params.text("path"));
  EXPECT_EQ(paths, (std::set<std::string>{"a", "b.c,toy.n=3"}));
}

TEST_F(PlanTest, BadSetsNameTheFlag) {
  const auto of = [&](const std::string& set) {
    request_.targets = {"toy"};
    request_.sets = {set};
    return refusal_of_request();
  };
  EXPECT_EQ(of("toy"), "--set toy: must be family.param=v1,v2");
  EXPECT_EQ(of("toy.n"), "--set toy.n: must be family.param=v1,v2");
  EXPECT_EQ(of("n=1"), "--set n=1: must be family.param=v1,v2");
  EXPECT_EQ(of("toi.n=1"), "--set toi.n=1: unknown family \"toi\"; did you mean \"toy\"?");
  EXPECT_EQ(of("toy.byte=1"), "--set toy.byte=1: toy has no parameter \"byte\"; did you mean \"bytes\"?");
  EXPECT_EQ(of("toy.n=x"), "--set toy.n=x: \"n\" must be an integer, is \"x\"");
  EXPECT_EQ(of("toy.n=1,,2"), "--set toy.n=1,,2: a value of \"n\" is empty");
  EXPECT_EQ(of("toy.n=1,toi.n=2"), "--set toi.n=2: unknown family \"toi\"; did you mean \"toy\"?");
  EXPECT_EQ(of("toy.n=0"), "--set toy.n=0: 0 is too small for \"n\": at least 1");
  EXPECT_EQ(of("toy.op=copi"), "--set toy.op=copi: \"copi\" is no value of \"op\"; did you mean \"copy\"?");
  EXPECT_THAT(of("toy.on=1"), HasSubstr("must be true or false"));
  EXPECT_THAT(of("toy.bytes=1XB"), HasSubstr("is not a size"));
  EXPECT_THAT(of("toy.path=\xff"), HasSubstr("must be UTF-8"));
  EXPECT_THAT(of("toy.n=99999999999999999999"), StartsWith("--set toy.n="));
  EXPECT_EQ(of("pair.heads=1"), "--set pair.heads=1: nothing to run is of the family \"pair\" (there are: toy)");
}

TEST_F(PlanTest, WordsAfterAFamilyAreItsParameters) {
  request_.targets = {"toy",     "op=copy", "bytes=1KiB,2KiB", "threads=1", "pair",
                      "heads=2", "toy",     "op=read",         "threads=1"};
  std::vector<std::string> short_keys;
  for (const std::string& key : keys(expand())) short_keys.push_back(key.substr(0, key.find("/n=")));
  EXPECT_THAT(short_keys, ElementsAre("toy/op=copy/bytes=1024", "toy/op=copy/bytes=2048", "pair/heads=2/width=64",
                                      "toy/op=read/bytes=4096"));
  request_.targets = {"toy", "op=copy", "threads=1"};
  request_.sets = {"toy.op=read"};  // --set is for every case of the family, and applied last
  EXPECT_THAT(keys(expand()), ElementsAre(StartsWith("toy/op=read/")));
}

TEST_F(PlanTest, RefusesAWordThatIsNoParameter) {
  const auto of = [&](std::vector<std::string> targets) {
    request_.targets = std::move(targets);
    return refusal_of_request();
  };
  EXPECT_EQ(of({"toy", "byte=1"}), "byte=1: toy has no parameter \"byte\"; did you mean \"bytes\"?");
  EXPECT_EQ(of({"toy", "op=copi"}), "op=copi: \"copi\" is no value of \"op\"; did you mean \"copy\"?");
  EXPECT_EQ(of({"pair", "heads=2", "toy", "heads=2"}),
            "heads=2: toy has no parameter \"heads\"; did you mean \"threads\"?");
  EXPECT_EQ(of({"n=1", "toy"}), "n=1: name the family of this parameter before it");
  const std::string plan = write("p.json", R"({"schema":1,"cases":[{"family":"toy"}]})");
  EXPECT_THAT(of({plan, "n=1"}), HasSubstr("is no family; set parameters in a plan by --set FAMILY.PARAM=V"));
}

TEST_F(PlanTest, APlanFileMayHaveAnEqualsSign) {
  request_.targets = {write("a=b.json", R"({"schema":1,"cases":[{"family":"pair"}]})")};
  EXPECT_EQ(expand().cases.size(), 1u);
}

TEST_F(PlanTest, FilterSearchesKeys) {
  request_.targets = {"toy", "pair"};
  request_.filter = "op=(write|copy)|^pair";
  EXPECT_THAT(keys(expand()), ElementsAre(HasSubstr("op=write"), "pair/heads=4/width=64"));
  request_.filter = "pair/heads=5";
  EXPECT_THAT(refusal_of_request(),
              StartsWith("--filter \"pair/heads=5\": no case matches; nearest: pair/heads=4/width=64, toy/"));
  request_.filter = "(";
  EXPECT_THAT(refusal_of_request(), StartsWith("--filter \"(\": not a regular expression"));
  request_.filter = "pair";
  request_.sets = {"toy.n=1"};
  EXPECT_EQ(refusal_of_request(), "--set toy.n=1: --filter \"pair\" leaves no case of \"toy\"");
}

TEST_F(PlanTest, CasesThatAFilterRemovesAreNotCheckedAgainstLimits) {
  request_.filter = "bytes=4096";
  EXPECT_EQ(expand_cases(R"({"family":"toy","op":"read","bytes":[4096,"8GiB"]})").cases.size(), 1u);
}

// "big" needs twice its bytes, its slices a quarter.
std::vector<Family> families_of_models() {
  Family whole = fake_families().front();
  whole.name = "big";
  whole.params = {axis::text("model", "").doc("model"), axis::bytes("bytes", {4096}).doc("size"),
                  axis::integer("n", 1).range(1, 9).doc("a number")};
  whole.estimate = [](const Params& params, const World&) {
    return Estimate{.memory_bytes = 2.0 * static_cast<double>(params.integer("bytes"))};
  };
  whole.takes_one_rank = nullptr;
  Family slice = whole;
  slice.name = "slice";
  slice.adds_up_slices = true;
  slice.params.pop_back();
  slice.estimate = [](const Params& params, const World&) {
    return Estimate{.memory_bytes = static_cast<double>(params.integer("bytes")) / 2};
  };
  return {whole, slice};
}

TEST_F(PlanTest, AModelIsWholeOrInSlicesByMemory) {
  families_ = families_of_models();
  fs::create_directories(dir_ / "models");
  write("models/m.json", R"({"family": "big"})");
  write("models/odd.json", R"({"family": "none"})");
  request_.targets = {"m"};
  limits_.memory_bytes = 8192;
  Plan plan = expand();
  EXPECT_THAT(keys(plan), ElementsAre("big/model=m/bytes=4096/n=1"));
  EXPECT_EQ(plan.name, "m");
  EXPECT_THAT(plan.remarks, ElementsAre("m: whole, as the whole needs 8 KiB and this machine has 8 KiB"));
  limits_.memory_bytes = 8191;
  plan = expand();
  EXPECT_THAT(keys(plan), ElementsAre("slice/model=m/bytes=4096"));
  EXPECT_THAT(plan.remarks, ElementsAre("m: in slices (family slice), which need 2 KiB, as the whole needs 8 KiB and "
                                        "this machine has 8 KiB"));
  // Words count for what was chosen.
  request_.targets = {"m", "bytes=1024"};
  EXPECT_THAT(keys(expand()), ElementsAre("big/model=m/bytes=1024/n=1"));
  request_.targets = {"m", "n=2"};
  EXPECT_THAT(refusal_of_request(), HasSubstr("slice has no parameter \"n\""));
  request_.targets = {"m"};
  limits_.memory_bytes = 0;
  EXPECT_THAT(expand().remarks, ElementsAre("m: whole, as the memory of this machine is unknown"));
  request_.device = DeviceKind::cuda;
  limits_.gpu_memory_bytes = 5000;
  EXPECT_THAT(keys(expand()), ElementsAre("slice/model=m/bytes=4096"));
  request_.targets = {"odd"};
  EXPECT_THAT(refusal_of_request(), HasSubstr("models/odd.json: its family \"none\" cannot be run"));
}

}  // namespace
}  // namespace assay
