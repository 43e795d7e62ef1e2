// What a gate concludes: a table of evidence, and ten thousand gates drawn from recorded samples.
#include "harness/fitness/gate/decision.h"

#include "harness/core/error.h"
#include "harness/core/rng.h"
#include "harness/json/members.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <tuple>

namespace assay::gate {
namespace {

const std::filesystem::path source(ASSAY_SOURCE);

const Catalogue& catalogue() {
  static const Catalogue loaded = load_catalogue(source / "configs/gate.json");
  return loaded;
}

Repetition below(double shortfall, double outside = 0) {
  return {.value = 1 - shortfall, .shortfall = shortfall, .below = true, .outside = outside};
}
Repetition above() { return {.value = 1.1, .shortfall = -0.1, .outside = 0}; }

Figure figure(std::vector<Repetition> repetitions) {
  return {"throughput of gemm", "FLOP/s", 1, std::move(repetitions)};
}

Evidence slow_gemm(std::vector<Repetition> repetitions) {
  Evidence evidence;
  evidence.audited = true;
  TestOutcome& test = evidence.tests.emplace_back();
  test.test = "gemm";
  test.state = TestState::passed;
  test.figures.push_back(figure(std::move(repetitions)));
  return evidence;
}

Finding problem_of(const char* id, const char* device, Severity severity) {
  return {.id = id, .severity = severity, .seen = "seen", .meaning = "", .fix = "", .device = device};
}

Decision decided(const Evidence& evidence, const Scope& scope = {}) { return decide(evidence, scope, catalogue()); }

TEST(Gate, NothingSeenIsNotJudged) {
  EXPECT_EQ(decided({}).verdict, Fitness::unknown);
  EXPECT_EQ(decided({.audited = true, .problems = {}, .tests = {}}).verdict, Fitness::pass);
}

TEST(Gate, ProblemsDrainByTheirSeverityAndDevice) {
  const auto verdict = [](const Finding& problem, const Scope& scope) {
    return decided({.audited = true, .problems = {problem}, .tests = {}}, scope).verdict;
  };
  const Finding lost = problem_of("gpu-lost", "0000:1b:00.0", Severity::fault);
  EXPECT_EQ(verdict(lost, {}), Fitness::fail);
  EXPECT_EQ(verdict(lost, {{"0000:4c:00.0"}}), Fitness::fail);
  EXPECT_EQ(verdict(lost, {{"0000:1b:00.0"}}), Fitness::pass);  // another job's
  // A device that is no GPU here, as one that has left the bus, or a switch.
  EXPECT_EQ(verdict(problem_of("sxid-fatal", "0000:c1:00.0", Severity::fault), {{"0000:1b:00.0"}}), Fitness::fail);
  EXPECT_EQ(verdict(problem_of("disk-full", "/", Severity::fault), {{"0000:1b:00.0"}}), Fitness::fail);
  EXPECT_EQ(verdict(problem_of("gpu-hot", "0000:1b:00.0", Severity::warning), {}), Fitness::unsure);
  EXPECT_EQ(verdict(problem_of("governor", "", Severity::warning), {}), Fitness::pass);  // at_most info
  const Decision unknown =
      decided({.audited = true, .problems = {problem_of("new-kind", "", Severity::fault)}, .tests = {}});
  EXPECT_EQ(unknown.findings.at(0).id, unlisted);
}

TEST(Gate, WrongAnswersDrainAndBrokenTestsDoNot) {
  for (const auto& [state, verdict] : {std::pair(TestState::wrong, Fitness::fail),
                                       {TestState::broke, Fitness::unsure},
                                       {TestState::hung, Fitness::unsure},
                                       {TestState::not_run, Fitness::pass}}) {
    Evidence evidence = slow_gemm({});
    evidence.tests[0].state = state;
    evidence.tests[0].reason = "why";
    EXPECT_EQ(decided(evidence).verdict, verdict) << name_of(state);
  }
}

TEST(Gate, ATestThatRanOutOfMemoryHasItsOwnCode) {
  Evidence evidence = slow_gemm({});
  evidence.tests[0].state = TestState::broke;
  evidence.tests[0].reason = "out of memory";  // words decide nothing
  EXPECT_EQ(decided(evidence).findings.at(0).id, "test-broke");
  evidence.tests[0].out_of_memory = true;
  EXPECT_EQ(decided(evidence).findings.at(0).id, "out-of-memory");
}

TEST(Gate, WhatWasRequiredAndNotSeenIsNotJudged) {
  Evidence evidence{.audited = true, .problems = {}, .tests = {}};
  const auto add = [&](const char* test, const char* device, TestState state, const char* why) {
    TestOutcome& one = evidence.tests.emplace_back();
    one.test = test, one.device = device, one.state = state, one.reason = why;
  };
  add("audit", "", TestState::passed, "");
  add("peak", "", TestState::not_run, "job 7 runs on this host");  // not required
  EXPECT_TRUE(unseen(evidence.tests, catalogue()).empty());
  for (const char* test : {"gpu-gemm", "gpu-memory"})
    for (const char* device : {"0000:1b:00.0", "0000:4c:00.0", "0000:5d:00.0"})
      add(test, device, TestState::not_run, "too little time");
  add("gpu-transfer", "0000:1b:00.0", TestState::passed, "");
  evidence.unseen = unseen(evidence.tests, catalogue());
  EXPECT_EQ(evidence.unseen,
            std::vector<std::string>{"gpu-gemm, gpu-memory did not run on 0000:1b:00.0 and 2 more: too little time"});
  EXPECT_EQ(decided(evidence).verdict, Fitness::unknown);
  EXPECT_EQ(decided(evidence).why_not, evidence.unseen[0]);
  evidence.problems = {problem_of("gpu-hot", "0000:1b:00.0", Severity::warning)};
  EXPECT_EQ(decided(evidence).verdict, Fitness::unknown);
  EXPECT_EQ(decided(evidence).findings.size(), 1u);  // but kept
  evidence.problems[0] = problem_of("gpu-lost", "0000:1b:00.0", Severity::fault);
  EXPECT_EQ(decided(evidence).verdict, Fitness::fail);
}

TEST(Gate, OneSlowGpuOfEightIsNamed) {
  Evidence evidence{.audited = true, .problems = {}, .tests = {}};
  for (int i = 0; i < 8; ++i) {
    TestOutcome& one = evidence.tests.emplace_back();
    one.test = "gpu-gemm", one.device = "0000:0" + std::to_string(i) + ":00.0", one.state = TestState::passed;
    one.figures.push_back(figure(std::vector<Repetition>(3, i == 5 ? below(0.4) : above())));
  }
  const Decision decision = decided(evidence);
  EXPECT_EQ(decision.verdict, Fitness::fail);
  ASSERT_EQ(decision.findings.size(), 1u);
  EXPECT_EQ(decision.findings[0].device, "0000:05:00.0");
}

TEST(Gate, AFigureThatMissedItsFloorBesideOtherGpusCountsOnlyIfMeasuredAlone) {
  const auto verdict = [](std::vector<Repetition> repetitions) {
    return decided(slow_gemm(std::move(repetitions))).verdict;
  };
  Repetition crowded = below(0.4);
  crowded.crowded = true;
  EXPECT_EQ(verdict({crowded, crowded, crowded}), Fitness::unsure);
  EXPECT_EQ(verdict({crowded, above()}), Fitness::pass);
  EXPECT_EQ(verdict({crowded, below(0.4), below(0.4), below(0.4)}), Fitness::fail);
}

TEST(Gate, SlowFiguresDrainOnlyIfTheyRepeatUndisturbed) {
  const auto verdict = [](std::vector<Repetition> repetitions) {
    return decided(slow_gemm(std::move(repetitions))).verdict;
  };
  EXPECT_EQ(verdict({above()}), Fitness::pass);
  EXPECT_EQ(verdict({below(0.4)}), Fitness::unsure);
  EXPECT_EQ(verdict({below(0.4), below(0.4)}), Fitness::unsure);
  EXPECT_EQ(verdict({below(0.4), below(0.4), below(0.4)}), Fitness::fail);
  EXPECT_EQ(verdict({below(0.4), below(0.4), above()}), Fitness::unsure);
  EXPECT_EQ(verdict({below(0.4), below(0.4, 0.5), below(0.4)}), Fitness::unsure);
  EXPECT_EQ(verdict({below(0.4), below(0.4, 0.5), below(0.4), below(0.4)}), Fitness::fail);  // three undisturbed
  EXPECT_EQ(verdict({below(0.4, 0.05), below(0.4, 0.05), below(0.4, 0.05)}),
            Fitness::fail);  // too little to explain it
  EXPECT_EQ(verdict({below(0.05, 0.05), below(0.05, 0.05), below(0.05, 0.05)}), Fitness::unsure);
  Repetition unknown = below(0.4);
  unknown.outside.reset();
  EXPECT_EQ(verdict({unknown, unknown, unknown}), Fitness::unsure);
  Repetition unclear = below(0.01);  // its interval contains the floor
  unclear.below = false;
  EXPECT_EQ(verdict({unclear, unclear, unclear}), Fitness::pass);
}

TEST(Gate, AQuotaIsNamedAsTheCause) {
  Repetition one = below(0.4, 1.0);
  one.held_back = 0.8;
  const Decision decision = decided(slow_gemm({one, one, one}));
  EXPECT_EQ(decision.verdict, Fitness::fail);
  EXPECT_EQ(decision.findings.at(0).id, "cpu-quota");
  EXPECT_EQ(decided(slow_gemm({one})).verdict, Fitness::unsure);
  one.held_back = 0.01;
  EXPECT_EQ(decided(slow_gemm({one, one, one})).findings.at(0).id, "slow-product");
}

TEST(Gate, EveryKindWithACodeIsInTheCatalogue) {
  std::size_t codes = 0;
  for (const ProblemKind& kind : problem_kinds()) codes += !kind.code.empty();
  EXPECT_EQ(catalogue().codes.size(), codes);
  for (const auto& [id, test, inject] : {std::tuple("xid-fatal", "audit", "files"),
                                         {"gpu-wrong-product", "gpu-gemm", "bit-flip"},
                                         {"test-hung", "gemm", "hang"},
                                         {"audit-broke", "audit", "crash"}}) {
    EXPECT_EQ(catalogue().of(id).test, test) << id;
    EXPECT_EQ(catalogue().of(id).inject, inject) << id;
  }
  EXPECT_EQ(catalogue().of("gpu-slowed").test, "gpu-gemm");
  EXPECT_FALSE(catalogue().of("gpu-slowed").inject || catalogue().of("gpu-mps").inject);
}

TEST(Gate, AFileWithCodesOfItsOwnReplacesThoseOfTheTable) {
  test::TemporaryFolder folder;
  const auto load = [&](const std::string& codes) {
    const auto file = folder.path() / "gate.json";
    std::ofstream(file) << R"({"schema": 1, "tests": [{"name": "audit", "device": "host", "seconds": 1}], "codes": [
      {"code": "ASSAY-SYS-021", "id": "unlisted", "action": "monitor", "meaning": "another"},
      {"code": "ASSAY-MEM-019", "id": "out-of-memory", "action": "monitor"},
      {"code": "ASSAY-CPU-012", "id": "cpu-quota", "action": "monitor", "at_most": "info"},
      {"code": "ASSAY-GPU-051", "id": "gpu-slowed", "action": "isolate"}, )"
                        << codes << "]}";
    return load_catalogue(file);
  };
  const Catalogue own = load(R"({"code": "ASSAY-NET-099", "id": "swap", "action": "reset", "inject": "files"})");
  EXPECT_EQ(own.codes.size(), 5u);
  EXPECT_EQ(own.of("swap").code, "ASSAY-NET-099");
  EXPECT_EQ(own.of("swap").area, Area::network);
  EXPECT_EQ(own.of("swap").inject, "files");
  EXPECT_EQ(own.of("swap").meaning, find_kind("swap")->meaning);
  EXPECT_EQ(own.of("cpu-quota").at_most, Severity::info);
  EXPECT_EQ(own.of("xid-fatal").id, unlisted);
  for (const char* bad : {R"({"code": "ASSAY-XYZ-001", "id": "swap", "action": "reset"})",
                          R"({"code": "ASSAY-NET-1", "id": "swap", "action": "reset"})",
                          R"({"code": "ASSAY-SYS-021", "id": "swap", "action": "reset"})",
                          R"({"code": "ASSAY-NET-099", "id": "swap", "action": "reset", "test": "none"})"})
    EXPECT_THROW(load(bad), UsageError) << bad;
}

TEST(Gate, DevicesAndAreasAreMembersAndNoPartOfATextDecides) {
  Finding one = problem_of("xid-fatal", "0000:1b:00.0", Severity::fault);
  one.seen = one.meaning = "x";
  const Decision decision = decided({.audited = true, .problems = {one}, .tests = {}}, {{"0000:1b:00.0"}});
  EXPECT_EQ(decision.verdict, Fitness::pass);  // another job's GPU
  EXPECT_EQ(decision.findings.at(0).area, Area::gpu);
  EXPECT_EQ(decision.findings.at(0).device, "0000:1b:00.0");
}

TEST(Gate, NoTextDecides) {
  const auto decide_with = [](const Code& code, const std::string& text) {
    Finding problem = problem_of(code.id.c_str(), "0000:1b:00.0", code.severity);
    problem.seen = problem.meaning = problem.fix = text;
    Evidence evidence{.audited = true, .problems = {problem}, .tests = {}};
    for (const TestState state : {TestState::passed, TestState::wrong, TestState::broke, TestState::hung})
      evidence.tests.push_back({.test = "gemm", .state = state, .reason = text});
    Decision decision = decided(evidence, {{"0000:4c:00.0"}});
    for (Finding& one : decision.findings) one.seen = one.meaning = one.fix = "";
    return json_of(decision.findings).dump() + name_of(decision.verdict, verdict_words).data();
  };
  for (const Code& code : catalogue().codes)
    EXPECT_EQ(decide_with(code, "x"), decide_with(code, "out of memory: ASSAY-GPU-001 timeout: host h1 is lost"))
        << code.id;
}

TEST(Gate, TestsAreChosenByWhatTheyFindPerSecond) {
  const auto names = [](double seconds, bool gpus) {
    std::vector<std::string> chosen;
    for (const gate::Test* test : catalogue().choose(seconds, gpus)) chosen.push_back(test->name);
    return chosen;
  };
  EXPECT_TRUE(names(0.1, false).empty());
  EXPECT_EQ(names(0.6, false), std::vector<std::string>{"audit"});
  EXPECT_EQ(names(30, false).size(), 6u);
  const auto of_one_host =
      std::ranges::count_if(catalogue().tests, [](const gate::Test& test) { return test.device != "job"; });
  EXPECT_EQ(names(20, true).size(), static_cast<std::size_t>(of_one_host));  // whatever the number of GPUs
  EXPECT_EQ(names(1e4, false).front(), "audit");
  // A budget that is short is for the required ones.
  EXPECT_EQ(names(8.6, true), (std::vector<std::string>{"audit", "gpu-gemm", "gpu-memory", "gpu-transfer"}));
}

// --- replays
// -----------------------------------------------------------------------------------------------------------

struct Recorded {
  std::string kind;                              // clean, busy
  std::vector<std::vector<double>> repetitions;  // seconds per sample
  std::vector<std::optional<double>> outside;
};

std::map<std::string, std::vector<Recorded>> recorded() {
  std::map<std::string, std::vector<Recorded>> by_case;
  for (const char* kind : {"clean", "busy"}) {
    const Json json = read_json(source / "tests/runs/gate" / (std::string(kind) + ".json"));
    for (const Json& one : json.at("gates")) {
      Recorded gate{kind, {}, {}};
      for (const Json& repetition : one.at("repetitions")) {
        gate.repetitions.push_back(repetition.at("samples").get<std::vector<double>>());
        const Json& outside = repetition.at("outside");
        gate.outside.push_back(outside.is_null() ? std::nullopt : std::optional(outside.get<double>()));
      }
      by_case[one.at("case").get<std::string>()].push_back(std::move(gate));
    }
  }
  return by_case;
}

// A recorded gate, the samples of each repetition drawn again in blocks, as neighbours are alike.
Figure drawn(const Recorded& gate, double limit, double slower, std::mt19937_64& random) {
  constexpr std::size_t block = 4;
  Figure figure{"time", "s", limit, {}};
  for (std::size_t from = 0; from < gate.repetitions.size(); ++from) {
    const std::vector<double>& samples = gate.repetitions[from];
    std::vector<double> again;
    while (again.size() < samples.size())
      for (std::size_t k = 0, start = random() % samples.size(); k < block && again.size() < samples.size(); ++k)
        again.push_back(slower * samples[(start + k) % samples.size()]);
    const Summary summary = summarize(again);
    const double best = summary.ci95 ? summary.ci95->low : summary.median;
    figure.repetitions.push_back({.value = summary.median,
                                  .range = summary.ci95,
                                  .shortfall = summary.median / limit - 1,
                                  .below = best > limit,
                                  .outside = gate.outside[from]});
  }
  return figure;
}

// Medians of the clean gates, in logarithms.
std::vector<double> clean_medians(const std::vector<Recorded>& gates) {
  std::vector<double> logs;
  for (const Recorded& gate : gates)
    if (gate.kind == "clean")
      for (const auto& samples : gate.repetitions) logs.push_back(std::log(median(samples)));
  return logs;
}

TEST(Gate, TenThousandReplaysOfHealthyMachinesDrainNone) {
  std::mt19937_64 random(20261123);
  int gates = 0, drained = 0, slow = 0, found = 0;
  for (const auto& [name, recordings] : recorded()) {
    // A limit as `floors learn --same-machine` would set it: beyond what clean gates vary by.
    const std::vector<double> logs = clean_medians(recordings);
    const double beyond = 4 * std::max(robust_sigma(logs), 0.005), limit = std::exp(median(logs) + beyond);
    for (int i = 0; i < 2500; ++i, ++gates) {
      const Recorded& gate = recordings[random() % recordings.size()];
      drained += decided(slow_gemm(drawn(gate, limit, 1, random).repetitions)).verdict == Fitness::fail;
      // The same machine, slower by far more than it varies by, and nobody else on it: it drains.
      if (gate.kind != "clean") continue;
      ++slow;
      std::vector<Repetition> repetitions = drawn(gate, limit, 4 * std::exp(beyond), random).repetitions;
      for (Repetition& one : repetitions) one.outside = 0;
      found += decided(slow_gemm(std::move(repetitions))).verdict == Fitness::fail;
    }
  }
  EXPECT_EQ(gates, 10000);
  EXPECT_EQ(drained, 0);
  EXPECT_GT(found, slow * 9 / 10);
}

}  // namespace
}  // namespace assay::gate
