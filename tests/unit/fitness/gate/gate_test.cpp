// A whole gate on made-up trials: what hangs, is wrong, refused, out of memory or doubtful, and what is left out.
#include "harness/core/error.h"
#include "harness/fitness/gate/answer.h"
#include "harness/fitness/gate/inspection.h"
#include "harness/json/members.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/fitness/gate/made_up_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace assay::gate {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string gpu_a = "0000:1b:00.0", gpu_b = "0000:4c:00.0";

Catalogue shipped_catalogue() { return load_catalogue(std::filesystem::path(ASSAY_SOURCE) / "configs/gate.json"); }

std::string name_of(const Trial& trial) { return trial.command.empty() ? trial.filter : trial.command.at(1); }

// A record of a throughput of 100 FLOP/s.
Record record_of(const Trial& trial) {
  Record record;
  record.key = trial.filter.substr(1);
  record.device = trial.device;
  record.ranks = {{0, "h", "a device", 1.0}};
  record.metrics = {{"throughput", 100, "FLOP/s", Interval{99, 101}, Better::higher, {}, {}}};
  record.outside_cpu.emplace().usable = 2;
  return record;
}

TrialResult result_of(const Trial& trial, Record record) {
  TrialResult result = finished_with(std::move(record), 0.5);
  result.run->dir = trial.out;
  return result;
}

// Each trial takes half a second, unless it says otherwise; time passes only there and while waiting.
class MadeUp final : public MadeUpClock {
 public:
  std::vector<TrialResult> run(const std::vector<Trial>& trials) override {
    std::vector<TrialResult> results;
    double longest = 0;
    for (const Trial& trial : trials) {
      const std::string name = assay::gate::name_of(trial);
      asked.push_back(name);
      seen.push_back(trial);
      const auto own = answers.find(name);
      TrialResult result = own != answers.end()    ? own->second(trial)
                           : trial.command.empty() ? result_of(trial, record_of(trial))
                                                   : TrialResult{.code = 0, .seconds = 0.5};
      if (name == "audit" && own == answers.end()) result.output = dump_document(json_of(inspection));
      const bool late = result.failure && result.failure->kind == FailureKind::timeout;
      longest = std::max(longest, late ? trial.deadline : result.seconds);
      results.push_back(std::move(result));
    }
    pass(longest);
    return results;
  }
  bool interrupted() const override { return ended; }

  std::size_t count(const std::string& name) const {
    return static_cast<std::size_t>(std::count(asked.begin(), asked.end(), name));
  }

  std::map<std::string, std::function<TrialResult(const Trial&)>> answers = {};  // by name, for what is not usual
  Inspection inspection = {};
  std::vector<std::string> asked = {};
  std::vector<Trial> seen = {};
  bool ended = false;
};

class QuietHost final : public Surroundings {
 public:
  Variables environment() const override { return variables; }
  std::vector<std::string> other_jobs(const std::string&) const override { return jobs; }
  std::vector<std::string> gpus() const override { return {}; }
  std::optional<CpuTicks> ticks() const override { return std::nullopt; }
  bool alone() override { return free; }
  std::filesystem::path memory() const override { return folder_.path() / "past.jsonl"; }

  Variables variables = {};
  std::vector<std::string> jobs = {};
  bool free = true;

 private:
  test::TemporaryFolder folder_;
};

class Gates : public testing::Test {
 protected:
  Answer answer() { return run_gate(request_, trials_, host_); }
  static const TestOutcome& of(const Answer& answer, std::string_view test) {
    return *std::ranges::find(answer.tests, test, &TestOutcome::test);
  }
  static std::vector<std::string> found(const Answer& answer) {
    std::vector<std::string> ids;
    for (const Finding& one : answer.decision.findings) ids.push_back(one.id);
    return ids;
  }
  void floor(double limit) {
    fitness::Floor floor;
    floor.key = "gemm/*", floor.metric = "throughput", floor.unit = "FLOP/s", floor.protocol = Json::object();
    floor.limit = limit, floor.pointer = "/floors/0";
    request_.floors = fitness::Floors{"f.json", "f", "", {floor}};
  }
  void fails(const std::string& name, Status status, FailureKind kind) {
    trials_.answers[name] = [status, kind](const Trial& trial) {
      Record record = record_of(trial);
      record.status = status;
      record.reason = "x";
      record.failure = {.kind = kind};
      return result_of(trial, std::move(record));
    };
  }

  Request request_{.catalogue = shipped_catalogue(), .budget = 60, .start = {}, .gpus = {}, .floors = {}};
  MadeUp trials_;
  QuietHost host_;
};

TEST_F(Gates, AHealthyMachineIsOk) {
  const Answer all = answer();
  EXPECT_EQ(all.decision.verdict, Fitness::pass);
  EXPECT_THAT(trials_.asked, testing::UnorderedElementsAre("audit", "disk", "^peak/", "^gemm/", "^memory/op=triad",
                                                           "^memory/op=latency"));
  for (const TestOutcome& one : all.tests)
    EXPECT_EQ(one.state, one.device.empty() && one.test.starts_with("gpu-") ? TestState::not_run : TestState::passed)
        << one.test;
  EXPECT_EQ(of(all, "gemm").value, 100);
  EXPECT_EQ(exit_code(all.decision.verdict, ExitStyle::assay), 0);
}

TEST_F(Gates, WrongResultsDrain) {
  fails("^gemm/", Status::failed, FailureKind::wrong_result);
  const Answer all = answer();
  EXPECT_EQ(all.decision.verdict, Fitness::fail);
  EXPECT_THAT(found(all), ElementsAre("wrong-product"));
  EXPECT_THAT(all.past, IsEmpty());
  EXPECT_EQ(answer().past, "drain once in the past 7 days");
}

TEST_F(Gates, WhatHangsIsEndedAndLeavesTheOthersTheirTime) {
  trials_.answers["^peak/"] = [](const Trial&) {
    return TrialResult{.failure = Failure{.kind = FailureKind::timeout}};
  };
  fails("^memory/op=triad", Status::error, FailureKind::timeout);
  const Answer all = answer();
  EXPECT_EQ(all.decision.verdict, Fitness::unsure);
  EXPECT_EQ(of(all, "peak").state, TestState::hung);
  EXPECT_THAT(of(all, "peak").reason, HasSubstr("it usually takes 0.8 s"));
  EXPECT_EQ(of(all, "memory").state, TestState::hung);
  EXPECT_EQ(of(all, "memory-latency").state, TestState::passed);
  EXPECT_LE(all.seconds, 60);
}

TEST_F(Gates, ATestForWhichTheBudgetWasTooShortIsNotSaidToHang) {
  request_.budget = 3;
  trials_.answers["disk"] = [](const Trial&) { return TrialResult{.failure = Failure{.kind = FailureKind::timeout}}; };
  const Answer all = answer();
  EXPECT_EQ(of(all, "disk").state, TestState::not_run);
  EXPECT_EQ(of(all, "disk").reason, "the budget ended before it did");
}

TEST_F(Gates, LackOfMemoryHasItsOwnCodeAndCrashesHaveAnother) {
  fails("^gemm/", Status::error, FailureKind::out_of_memory);
  fails("^peak/", Status::error, FailureKind::crashed);
  trials_.answers["^memory/op=triad"] = [](const Trial&) {
    return TrialResult{.failure = Failure{.kind = FailureKind::crashed}, .errors = "out of memory"};  // words
  };
  const Answer all = answer();
  EXPECT_EQ(all.decision.verdict, Fitness::unsure);
  EXPECT_THAT(found(all), ElementsAre("out-of-memory", "test-broke", "test-broke"));
}

TEST_F(Gates, RefusedTestsOfGpusAreNotRunAndNotJudged) {
  trials_.inspection.gpus = {{.pci = gpu_a, .uuid = "GPU-aaaa", .name = "H100"}};
  for (const char* name : {"^gemm/", "^memory/", "^transfer/"})
    trials_.answers[name] = [](const Trial& trial) {
      if (trial.device == "cpu") return result_of(trial, record_of(trial));
      return TrialResult{.failure = Failure{.kind = FailureKind::refused}, .code = 2, .errors = "no CUDA"};
    };
  const Answer all = answer();
  EXPECT_EQ(all.decision.verdict, Fitness::unknown);
  EXPECT_EQ(of(all, "gpu-gemm").state, TestState::not_run);
  EXPECT_EQ(of(all, "gpu-gemm").device, gpu_a);
  EXPECT_EQ(all.decision.why_not, "gpu-gemm, gpu-memory, gpu-transfer did not run on 0000:1b:00.0: no CUDA");
  EXPECT_EQ(exit_code(all.decision.verdict, ExitStyle::assay), 3);
}

TEST_F(Gates, DoubtfulFiguresAreMeasuredAgainUntilItIsSure) {
  floor(120);
  Answer all = answer();
  EXPECT_EQ(all.decision.verdict, Fitness::fail);
  EXPECT_THAT(found(all), ElementsAre("slow-product"));
  EXPECT_EQ(trials_.count("^gemm/"), needed_repetitions);
  EXPECT_EQ(trials_.count("^peak/"), 1u);
  EXPECT_GT(all.seconds, 30);  // far apart
  EXPECT_EQ(of(all, "gemm").figures.at(0).repetitions.size(), needed_repetitions);
  // A figure that holds when it is measured again is no finding but a suspicion.
  trials_ = MadeUp();
  int runs = 0;
  trials_.answers["^gemm/"] = [&runs](const Trial& trial) {
    Record record = record_of(trial);
    if (runs++ > 0) record.metrics[0].value = 130, record.metrics[0].ci95 = Interval{129, 131};
    return result_of(trial, std::move(record));
  };
  all = answer();
  EXPECT_EQ(all.decision.verdict, Fitness::unsure);
  EXPECT_EQ(trials_.count("^gemm/"), 2u);
}

TEST_F(Gates, AFloorThatJudgesNothingIsNotHeld) {
  floor(120);
  request_.floors->floors[0].key = "collective/*";
  const Answer all = answer();
  EXPECT_EQ(all.decision.verdict, Fitness::unknown);
  EXPECT_THAT(all.decision.why_not, HasSubstr("no floor of f.json judged a figure of this gate"));
}

TEST_F(Gates, ABudgetThatIsTooSmallForAnyTestIsNotJudged) {
  request_.budget = 0.2;
  const Answer all = answer();
  EXPECT_THAT(trials_.asked, IsEmpty());
  EXPECT_EQ(all.decision.verdict, Fitness::unknown);
  EXPECT_THAT(all.decision.why_not, HasSubstr("the budget of 0.2 s is too small for any test: the shortest, "));
}

TEST_F(Gates, WhatTheBudgetLeavesOutIsSaid) {
  request_.budget = 1.5;
  const Answer all = answer();
  EXPECT_EQ(all.decision.verdict, Fitness::pass);  // none of these is required
  EXPECT_THAT(of(all, "memory-latency").reason, HasSubstr("the budget has too little time"));
  EXPECT_EQ(trials_.count("^memory/op=latency"), 0u);
}

TEST_F(Gates, SharedTestsAreLeftOutBesideAnotherJob) {
  host_.jobs = {"17", "18"};
  const Answer all = answer();
  EXPECT_THAT(trials_.asked, ElementsAre("audit", "disk"));
  EXPECT_EQ(of(all, "gemm").reason, "job 17, 18 runs on this host");
  EXPECT_EQ(all.decision.verdict, Fitness::pass);
}

TEST_F(Gates, OneGpuOfTwoIsTheJobsAndItsTrialsSeeNoOther) {
  trials_.inspection.gpus = {{.pci = gpu_a, .uuid = "GPU-aaaa", .name = "H100"},
                             {.pci = gpu_b, .uuid = "GPU-bbbb", .name = "H100"}};
  host_.variables = {{"SLURM_JOB_GPUS", "1"}};
  const Answer all = answer();
  EXPECT_EQ(of(all, "gpu-gemm").device, gpu_b);
  EXPECT_THAT(of(all, "gemm").reason, HasSubstr("1 of the 2 GPUs may be another job's"));
  for (const Trial& trial : trials_.seen)
    if (trial.device == "cuda") {
      EXPECT_EQ(trial.environment.at("CUDA_VISIBLE_DEVICES"), "GPU-bbbb");
    }
}

std::string numbered_gpu(int number) { return "0000:" + std::to_string(number) + "d:00.0"; }

TEST_F(Gates, EightGpusTakeAsLongAsOneAndOneThatHangsHoldsUpNoOther) {
  const auto with_gpus = [&](int count) {
    trials_ = MadeUp();
    for (int i = 0; i < count; ++i)
      trials_.inspection.gpus.push_back(
          {.pci = numbered_gpu(i), .uuid = "GPU-" + std::to_string(i) + "abc", .name = "H100"});
    // Each takes the seconds that the catalogue declares.
    for (const auto& each : request_.catalogue.tests)
      if (each.device == "cuda")
        trials_.answers[each.cases] = [seconds = each.seconds](const Trial& trial) {
          TrialResult result = result_of(trial, record_of(trial));
          result.seconds = seconds;
          return result;
        };
  };
  with_gpus(1);
  const double one = answer().seconds;
  with_gpus(8);
  const Answer eight = answer();
  EXPECT_EQ(eight.decision.verdict, Fitness::pass);
  EXPECT_LE(eight.seconds, 1.2 * one);
  // The budget of the prolog suffices for them.
  request_.budget = 20;
  with_gpus(8);
  const auto usual = trials_.answers["^gemm/"];
  trials_.answers["^gemm/"] = [&](const Trial& trial) {
    const auto gpu = trial.environment.find("CUDA_VISIBLE_DEVICES");
    if (gpu == trial.environment.end() || gpu->second != "GPU-5abc") return usual(trial);
    return TrialResult{.failure = Failure{.kind = FailureKind::timeout}};
  };
  const Answer held_up = answer();
  EXPECT_LE(held_up.seconds, request_.budget + 1);
  EXPECT_EQ(held_up.decision.verdict, Fitness::unknown);  // required tests of that GPU did not run
  EXPECT_THAT(held_up.decision.why_not, HasSubstr("on " + numbered_gpu(5) + ": gpu-gemm hung there"));
  for (const TestOutcome& test : held_up.tests) {
    if (!test.test.starts_with("gpu-")) continue;
    const bool hung = test.device == numbered_gpu(5);
    EXPECT_EQ(test.state, !hung                     ? TestState::passed
                          : test.test == "gpu-gemm" ? TestState::hung
                                                    : TestState::not_run)
        << test.test << " " << test.device << " " << test.reason;
  }
  EXPECT_THAT(found(held_up), Contains("gpu-test-hung"));
}

TEST_F(Gates, AnAuditThatBreaksIsNoHealthyMachine) {
  trials_.answers["audit"] = [](const Trial&) { return TrialResult{.code = 0, .output = "{"}; };
  Answer all = answer();
  EXPECT_EQ(of(all, "audit").state, TestState::broke);
  EXPECT_THAT(found(all), Contains("audit-broke"));
  EXPECT_EQ(all.decision.verdict, Fitness::unsure);
  trials_.answers["audit"] = [](const Trial&) { return TrialResult{.failure = Failure{.kind = FailureKind::timeout}}; };
  all = answer();
  EXPECT_THAT(found(all), Contains("audit-hung"));
}

TEST_F(Gates, OnlyOneRunsOnAHostAndASignalEndsIt) {
  host_.free = false;
  Answer all = answer();
  EXPECT_THAT(trials_.asked, IsEmpty());
  EXPECT_EQ(all.decision.verdict, Fitness::unknown);
  EXPECT_THAT(all.decision.why_not, HasSubstr("another gate runs on this host"));
  host_.free = true;
  trials_.ended = true;
  all = answer();
  EXPECT_EQ(all.decision.why_not, "interrupted by a signal");
}

TEST_F(Gates, AnInjectedFaultIsLookedForAlone) {
  request_.inject = request_.catalogue.find("out-of-memory");
  fails("^gemm/", Status::error, FailureKind::out_of_memory);
  const Answer all = answer();
  EXPECT_THAT(trials_.asked, ElementsAre("^gemm/"));
  EXPECT_EQ(trials_.seen[0].inject, "oom");
  EXPECT_THAT(found(all), ElementsAre("out-of-memory"));
  EXPECT_THAT(answer_text(request_, all, ExitStyle::npd), HasSubstr("injected out-of-memory: "));
}

TEST(GateAnswer, EachStyleHasItsCodes) {
  for (const auto& [verdict, codes] : {std::pair(Fitness::pass, std::array{0, 0, 0}),
                                       {Fitness::unsure, {0, 0, 1}},
                                       {Fitness::fail, {1, 1, 2}},
                                       {Fitness::unknown, {3, 2, 3}}})
    for (const ExitStyle style : {ExitStyle::assay, ExitStyle::npd, ExitStyle::nagios})
      EXPECT_EQ(exit_code(verdict, style), codes[static_cast<std::size_t>(style)]) << assay::name_of(style);
}

}  // namespace
}  // namespace assay::gate
