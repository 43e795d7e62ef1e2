#include "reports/diagnosis/document.h"

#include "tests/support/runs.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <memory>

namespace assay::report {
namespace {

using testing::HasSubstr;

Record two_rank_training() {
  Record record = test::record_of("transformer/model=gpt2-tiny", {test::seconds("step_time", 1.0)});
  record.params = {{"model", "gpt2-tiny"}};
  record.world_ranks = 2;
  return record;
}

RunData run_with(Record record) {
  return test::run_of({std::move(record)}, "r",
                      {{"environment", {{"gpus", Json::array({{{"pci", "0000:01:00.0"}, {"numa_node", 0}}})}}}});
}

std::map<std::string, RuleState> states(Record record) {
  std::vector<RunData> runs;
  runs.push_back(run_with(std::move(record)));
  const RunSet set(std::move(runs));
  std::map<std::string, RuleState> found;
  for (const Diagnosis& one : diagnose(set, shipped_rules())) found[one.id] = one.worst.state;
  return found;
}

// Makes a record whose evidence has this value.
struct Drill {
  const char* id;
  const char* evidence;
  std::function<void(Record&, double)> make;
};

RankResult rank_with(int rank, double pace) {
  RankResult result;
  result.rank = rank;
  result.pace = pace;
  return result;
}

std::vector<Drill> drills() {
  return {
      {"data-starved", "data_wait_share",
       [](Record& r, double value) {
         r.spans = {{"data_wait", value}};
       }},
      {"comm-exposed", "communication_share",
       [](Record& r, double value) {
         r.spans = {{"exposed_communication", value}};
       }},
      {"imbalance", "arrival_skew_share",
       [](Record& r, double value) { r.metrics.push_back(test::seconds("arrival_skew", value)); }},
      {"imbalance", "pace_ratio",
       [](Record& r, double value) {
         r.ranks = {rank_with(0, 1), rank_with(1, value), rank_with(2, 1)};
       }},
      {"throttled", "throttled_share",
       [](Record& r, double value) {
         r.samples.count = 1000;
         r.samples.throttled.emplace(static_cast<std::size_t>(1000 * value), 1);
       }},
      {"memory-bound", "dram_active",
       [](Record& r, double value) {
         r.telemetry["dram_active"] = {"1", {0, 1}, {value, value}};
       }},
      {"cpu-oversubscribed", "quota_share",
       [](Record& r, double value) {
         r.outside_cpu.emplace();
         r.outside_cpu->usable = 4;
         r.outside_cpu->throttled = 4 * value;
       }},
      {"cpu-oversubscribed", "cpu_wait_share",
       [](Record& r, double value) {
         r.telemetry["cpu_wait"] = {"1", {0, 1}, {value, value}};
       }},
      {"stalls", "stall_share",
       [](Record& r, double value) {
         // 99 steps of 1 s and one of 1 + extra: extra / (100 + extra) = value.
         r.samples.values.assign(99, 1.0);
         r.samples.values.push_back(1 + 100 * value / (1 - value));
       }},
      {"launch-bound", "gpu_idle_share",
       [](Record& r, double value) {
         r.spans = {{"gpu_idle:step", value}};
       }},
      {"copy-bound", "exposed_copies_share",
       [](Record& r, double value) {
         r.spans = {{"exposed_copies", value}};
       }},
  };
}

const Rule& rule_of(const Drill& drill) {
  for (const Rule& rule : shipped_rules())
    if (rule.id == drill.id && rule.evidence == drill.evidence) return rule;
  throw Error("no such rule");
}

TEST(Diagnosis, EachRuleFiresAtItsThresholdAndIsQuietTenPercentBelowAndSilentWithoutItsEvidence) {
  for (const Drill& drill : drills()) {
    SCOPED_TRACE(drill.evidence);
    const Rule& rule = rule_of(drill);
    const auto state_at = [&](double value) {
      Record record = two_rank_training();
      drill.make(record, value);
      return states(record);
    };
    EXPECT_EQ(state_at(1.02 * rule.warn).at(drill.id), RuleState::warn);
    if (rule.bad) {
      EXPECT_EQ(state_at(1.02 * *rule.bad).at(drill.id), RuleState::bad);
    }
    EXPECT_EQ(state_at(rule.evidence == "pace_ratio" ? 1.0 : 0.9 * rule.warn).at(drill.id), RuleState::quiet);
    EXPECT_EQ(states(two_rank_training()).at(drill.id), RuleState::not_judged);
    for (const auto& [id, state] : state_at(rule.bad.value_or(rule.warn) * 1.02))
      EXPECT_TRUE(id == drill.id || state < RuleState::warn) << id;
  }
}

TEST(Diagnosis, RanksFarFromTheirGpu) {
  for (const int node : {0, 1}) {
    Record record = two_rank_training();
    record.device = "cuda";
    RankResult rank = rank_with(0, 1);
    rank.pci = "0000:01:00.0";
    rank.numa_node = node;
    record.ranks = {rank};
    EXPECT_EQ(states(record).at("numa"), node == 0 ? RuleState::quiet : RuleState::bad);
  }
}

// What one rule says of the first record of a run.
RuleResult judged(const std::string& id, std::vector<Record> records, const Json& environment = {}) {
  for (Record& record : records)
    if (record.device.empty()) record.device = "cpu";
  std::vector<RunData> data;
  data.push_back(test::run_of(std::move(records), "r", {{"environment", environment}}));
  const RunSet set(std::move(data));
  const Entry& first = set.entries().front();
  const EvidenceSet evidence = evidence_of(first, set.entries());
  for (const Rule& rule : shipped_rules())
    if (rule.id == id) {
      RuleResult result = judge(rule, first, evidence);
      result.entry = nullptr;
      return result;
    }
  return {};
}

Record step_in(const std::string& precision, double rate) {
  Record record =
      test::record_of("llama/model=m/precision=" + precision, {test::metric("throughput", rate, "tokens/s")});
  record.params = {{"model", "m"}, {"precision", precision}};
  return record;
}

TEST(WhatToChange, AFasterPrecisionIsTheOneMeasuredElseBoundedByProducts) {
  const RuleResult measured = judged("slow-precision", {step_in("f32", 100), step_in("bf16", 250)});
  EXPECT_EQ(measured.state, RuleState::warn);
  EXPECT_EQ(measured.text(), "the same step in bf16, measured in this run, is 2.5 times as fast");
  EXPECT_EQ(measured.gain_text(), "about 2.5 x");
  EXPECT_EQ(judged("slow-precision", {step_in("bf16", 250), step_in("f32", 100)}).state, RuleState::quiet);

  const auto product = [](const std::string& dtype, double rate) {
    return test::record_of("gemm/dtype=" + dtype + "/m=1", {test::metric("throughput", rate, "FLOP/s")});
  };
  const RuleResult bounded =
      judged("slow-precision", {step_in("f32", 100), product("f32", 1e11), product("bf16", 6e11)});
  EXPECT_EQ(bounded.text(), "the best product in bf16 of this run is 6 times as fast");
  EXPECT_EQ(bounded.gain_text(), "at most 6 x");
  EXPECT_EQ(judged("slow-precision", {step_in("f32", 100), product("f32", 1e11), product("bf16", 0.5e11)}).state,
            RuleState::quiet);
  EXPECT_EQ(judged("slow-precision", {step_in("f32", 100)}).state, RuleState::not_judged);
  Record other_model = step_in("bf16", 250);
  other_model.params["model"] = "n";
  EXPECT_EQ(judged("slow-precision", {step_in("f32", 100), other_model}).state, RuleState::not_judged);
}

TEST(WhatToChange, FewerThreadsAndOtherStoresIfTheyWereFaster) {
  const auto stream = [](const std::string& threads, const std::string& store, double rate) {
    Record record = test::record_of("memory/op=triad/store=" + store + "/threads=" + threads,
                                    {test::metric("bandwidth", rate, "B/s")});
    record.params = {{"op", "triad"}, {"threads", threads}, {"store", store}};
    record.choices["threads"] = threads == "core" ? "1" : "4";
    record.labels = {{"level", "memory"}, {"store", store}};
    return record;
  };
  const RuleResult fewer = judged("thread-count", {stream("all", "plain", 1e10), stream("core", "plain", 1.5e10)});
  EXPECT_EQ(fewer.state, RuleState::warn);
  EXPECT_EQ(fewer.text(), "the same case with threads=core is 1.5 times as fast");
  EXPECT_EQ(judged("thread-count", {stream("core", "plain", 1e10), stream("all", "plain", 2e10)}).state,
            RuleState::not_judged)
      << "more threads are no advice for a case of one core";
  const RuleResult store = judged("store-kind", {stream("all", "plain", 1e10), stream("all", "nontemporal", 1.2e10)});
  EXPECT_EQ(store.text(), "the same loop with nontemporal stores is 1.2 times as fast");
  EXPECT_EQ(store.gain_text(), "about 1.2 x");
}

TEST(WhatToChange, PagesAGovernorAndAnEmptyChannel) {
  Record triad = test::record_of("memory/op=triad/threads=all", {test::metric("bandwidth", 1e10, "B/s")});
  triad.labels["level"] = "memory";
  triad.choices["page_size"] = "4KiB";
  EXPECT_EQ(judged("small-pages", {triad}).state, RuleState::warn);
  triad.choices["page_size"] = "2MiB";
  EXPECT_EQ(judged("small-pages", {triad}).state, RuleState::quiet);

  const auto channels = [](int populated) {
    return Json{{"memory", {{"channels", {{"all", 8}, {"populated", populated}}}}}};
  };
  const RuleResult empty = judged("empty-channel", {triad}, channels(6));
  EXPECT_EQ(empty.state, RuleState::warn);
  EXPECT_EQ(empty.text(), "25 % of the memory channels have no DIMM");
  EXPECT_EQ(empty.gain_text(), "at most 1.33 x");
  EXPECT_EQ(judged("empty-channel", {triad}, channels(8)).state, RuleState::quiet);
  EXPECT_EQ(judged("empty-channel", {triad}).state, RuleState::not_judged);

  Record product = test::record_of("gemm/dtype=f32/m=1", {test::metric("throughput", 1e10, "FLOP/s")});
  product.telemetry["clock"] = {"Hz", {0, 1}, {2e9, 2e9}};
  const auto governed = [](const char* governor) {
    return Json{{"cpu", {{"governors", {{governor, 2}}}, {"clocks_hz", {{"max", 4e9}}}}}};
  };
  const RuleResult slow = judged("governor", {product}, governed("powersave"));
  EXPECT_EQ(slow.state, RuleState::bad);
  EXPECT_EQ(slow.gain_text(), "at most 2 x");
  EXPECT_EQ(judged("governor", {product}, governed("performance")).state, RuleState::quiet);
  EXPECT_EQ(judged("governor", {product}).state, RuleState::not_judged) << "a virtual machine shows no governor";
}

TEST(WhatToChange, IsOrderedByGain) {
  Record step = two_rank_training();
  step.spans = {{"data_wait", 0.2}, {"exposed_communication", 0.5}};
  std::vector<RunData> data;
  data.push_back(run_with(step));
  const RunSet runs(std::move(data));
  const auto all = diagnose(runs, shipped_rules());
  const auto found = by_gain(all, 5);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].rule->id, "comm-exposed");
  EXPECT_EQ(found[0].gain_text(), "about 2 x");
  EXPECT_EQ(found[1].gain_text(), "about 1.25 x");
}

// The roofs meet at 10 FLOP per byte; the step does `intensity`, in 1 GB.
std::vector<Record> step_under_roofs(double intensity) {
  Record peak = test::record_of("peak/dtype=f32/threads=all", {test::metric("throughput", 1e11, "FLOP/s")});
  Record triad = test::record_of("memory/op=triad/bytes=100000000", {test::metric("bandwidth", 1e10, "B/s")});
  triad.labels["level"] = "memory";
  Record step = test::record_of("transformer/model=m/precision=f32/threads=all",
                                {test::seconds("step_time", 1), test::metric("model_flops", intensity * 1e9, "FLOP/s"),
                                 test::metric("planned_memory", 1e9, "B", {}, Better::lower)});
  std::vector<Record> records{peak, triad, step};
  for (Record& record : records) record.device = "cpu";
  return records;
}

RuleResult memory_bound(std::vector<Record> records, double cache_bytes = 1e8) {
  std::vector<RunData> data;
  const Json cache = {{"level", 3}, {"bytes", cache_bytes}, {"count", 1}};
  data.push_back(test::run_of(std::move(records), "r", {{"environment", {{"cpu", {{"caches", {cache}}}}}}}));
  static std::vector<std::unique_ptr<RunSet>> kept;  // the finding points into it
  kept.push_back(std::make_unique<RunSet>(std::move(data)));
  for (const Diagnosis& one : diagnose(*kept.back(), shipped_rules()))
    if (one.id == "memory-bound") return one.worst;
  return {};
}

TEST(MemoryBound, LeftOfTheRidgeOfTheRunsOwnRoofs) {
  const RuleResult left = memory_bound(step_under_roofs(4));
  EXPECT_EQ(left.state, RuleState::warn);
  EXPECT_EQ(left.evidence.number->value, 2.5);
  EXPECT_THAT(left.text(), HasSubstr("lies at 2.5 times as many"));
  EXPECT_EQ(memory_bound(step_under_roofs(11)).state, RuleState::quiet);
}

TEST(MemoryBound, AnIntervalOfTheRoofsAcrossTheRidgeCannotSay) {
  std::vector<Record> records = step_under_roofs(9.9);
  records[0].metrics.front().ci95 = Interval{0.9e11, 1.1e11};
  records[1].metrics.front().ci95 = Interval{0.99e10, 1.01e10};
  EXPECT_EQ(memory_bound(records).state, RuleState::cannot_say);
}

TEST(MemoryBound, IsNotJudgedWithoutWhatItNeeds) {
  const auto needs = [](std::vector<Record> records, double cache_bytes = 1e8) {
    const RuleResult finding = memory_bound(std::move(records), cache_bytes);
    EXPECT_EQ(finding.state, RuleState::not_judged);
    return finding.evidence.needs;
  };
  EXPECT_EQ(needs(step_under_roofs(4), 2e9), "a step larger than the CPU's caches");
  const std::vector<Record> all = step_under_roofs(4);
  EXPECT_EQ(needs({all[0], all[2]}), "the families peak and memory in the same run");
  EXPECT_EQ(needs({all[1], all[2]}), "the families peak and memory in the same run");
  std::vector<Record> cached = all;
  cached[1].labels["level"] = "memory, in part cached";
  EXPECT_EQ(needs(cached), "the families peak and memory in the same run");
  std::vector<Record> one_core = all;
  one_core[2].key = "transformer/model=m/precision=f32/threads=core";
  EXPECT_EQ(needs(one_core), "a step on all cores");
}

TEST(Diagnosis, AnIntervalAcrossTheThresholdCannotSay) {
  Record record = two_rank_training();
  record.metrics.front().ci95 = Interval{0.8, 1.2};
  record.spans = {{"data_wait", 0.05}};
  EXPECT_EQ(states(record).at("data-starved"), RuleState::cannot_say);
  std::vector<RunData> data;
  data.push_back(run_with(record));
  const RunSet runs(std::move(data));
  const auto all = diagnose(runs, shipped_rules());
  EXPECT_EQ(exit_code_of(all, RuleState::bad), ExitCode::no_data);
  EXPECT_EQ(exit_code_of(all, std::nullopt), ExitCode::ok);  // nobody asked
}

TEST(Diagnosis, TheCeilingIsAmdahls) {
  Record record = two_rank_training();
  record.spans = {{"data_wait", 0.5}};
  std::vector<RunData> data;
  data.push_back(run_with(record));
  const RunSet runs(std::move(data));
  const auto all = diagnose(runs, shipped_rules());
  const Diagnosis& first = all.front();
  EXPECT_EQ(first.id, "data-starved");
  EXPECT_DOUBLE_EQ(first.worst.ceiling().value(), 2.0);
  EXPECT_EQ(first.worst.text(), "50 % of a step waits for data");
  EXPECT_EQ(exit_code_of(all, RuleState::bad), ExitCode::failed);
  const Json json = diagnosis_json(all, {});
  EXPECT_EQ(json["rules"][0]["state"], "bad");
  EXPECT_EQ(json["rules"][0]["evidence"][0]["value"], 0.5);
  EXPECT_EQ(json["rules"][0]["ceiling"], 2.0);
}

TEST(Diagnosis, AnImbalanceNamesTheSlowestRankAndAllAtTheOthersPaceIsItsCeiling) {
  Record record = two_rank_training();
  record.metrics.push_back(test::seconds("arrival_skew", 0.2));
  record.ranks = {rank_with(0, 0.4), rank_with(1, 0.8), rank_with(2, 0.4)};
  record.ranks[1].host = "node7";
  record.ranks[1].pci = "0000:01:00.0";
  std::vector<RunData> data;
  data.push_back(run_with(record));
  const RunSet runs(std::move(data));
  int fired = 0;
  for (const Diagnosis& one : diagnose(runs, shipped_rules()))
    for (const RuleResult& finding : one.fired) {
      ++fired;
      EXPECT_EQ(one.id, "imbalance");
      EXPECT_THAT(finding.text(), HasSubstr("rank 1 on node7, GPU 0000:01:00.0"));
      EXPECT_DOUBLE_EQ(finding.ceiling().value(), 2.0);
    }
  EXPECT_EQ(fired, 2) << "the skew and the pace";
}

// A step of 1 s of two ranks, whose paces of .9 and .5 s contain what polling for the slower rank takes from the
// other's computation. Without an exchange they take .88 and .4 s.
TEST(Diagnosis, WhatWaitingCostsTheOtherRanksIsPartOfTheCeilingOfAnImbalance) {
  Record record = two_rank_training();
  record.ranks = {rank_with(0, 0.5), rank_with(1, 0.9)};
  record.metrics.push_back(test::seconds("exposed_communication", 1 - (0.88 + 0.4) / 2));
  record.metrics.push_back(test::seconds("transfer", 1 - 0.88));
  std::vector<RunData> data;
  data.push_back(run_with(record));
  const RunSet runs(std::move(data));
  std::optional<double> ceiling;
  for (const Diagnosis& one : diagnose(runs, shipped_rules()))
    if (one.id == "imbalance") ceiling = one.worst.ceiling();
  ASSERT_TRUE(ceiling);
  EXPECT_NEAR(*ceiling, 1 / 0.4, 1e-9);
}

// Half of the step waits for a collective; without any exchange it would be a fifth shorter. Then a fifth waits, half
// would be saved, and a tenth of the step would still wait for the last rank.
TEST(Diagnosis, TheGainOfCommunicationIsWhatMutingSavesAndWaitingForTheLastRankIsNotIts) {
  Record record = two_rank_training();
  record.spans = {{"exposed_communication", 0.5}};
  record.metrics.push_back(test::seconds("exposed_communication", 0.2));
  record.metrics.push_back(test::seconds("transfer", 0.2));
  const auto found = [](const Record& of) {
    std::vector<RunData> data;
    data.push_back(run_with(of));
    const RunSet runs(std::move(data));
    const auto all = diagnose(runs, shipped_rules());
    const auto at = std::ranges::find(all, "comm-exposed", &Diagnosis::id);
    return std::tuple(at->worst.state, at->worst.ceiling(), at->worst.evidence.number ? at->worst.text() : "");
  };
  const auto [state, ceiling, text] = found(record);
  EXPECT_EQ(state, RuleState::bad);
  EXPECT_DOUBLE_EQ(ceiling.value(), 1.25);
  EXPECT_THAT(text, HasSubstr("50 % of a step is communication"));
  EXPECT_THAT(text, HasSubstr("by muting 20 %, because"));
  Record slowed = two_rank_training();
  slowed.spans = {{"exposed_communication", 0.2}};
  slowed.metrics.push_back(test::seconds("exposed_communication", 0.5));
  slowed.metrics.push_back(test::seconds("transfer", 0.4));
  slowed.metrics.push_back(test::seconds("arrival_skew", 0.1));
  EXPECT_DOUBLE_EQ(std::get<1>(found(slowed)).value(), 1 / 0.6);
  EXPECT_THAT(std::get<2>(found(slowed)), HasSubstr("by muting 50 %, because the exchange also slows the computation "
                                                    "beside it; 10 % of the step waits for the last rank"));
  record.metrics.push_back(test::seconds("arrival_skew", 0.3));
  EXPECT_EQ(std::get<0>(found(record)), RuleState::not_judged);
}

TEST(Diagnosis, ADifferenceOfMicrosecondsIsNoImbalance) {
  const auto fires = [](double slow) {
    Record record = two_rank_training();
    record.ranks = {rank_with(0, 1e-6), rank_with(1, slow)};
    std::vector<RunData> data;
    data.push_back(run_with(record));
    const RunSet runs(std::move(data));
    const auto found = diagnose(runs, shipped_rules());
    return std::any_of(found.begin(), found.end(),
                       [](const Diagnosis& one) { return one.id == "imbalance" && !one.fired.empty(); });
  };
  EXPECT_FALSE(fires(9e-6));
  EXPECT_TRUE(fires(12e-6));
}

TEST(Diagnosis, WhatTheSlowestRankDoesNotExplainNamesNoRank) {
  Record record = two_rank_training();
  record.metrics.push_back(test::seconds("arrival_skew", 0.2));
  record.ranks = {rank_with(0, 0.4), rank_with(1, 0.44)};
  std::vector<RunData> data;
  data.push_back(run_with(record));
  const RunSet runs(std::move(data));
  int judged = 0;
  for (const Diagnosis& one : diagnose(runs, shipped_rules()))
    if (one.id == "imbalance") {
      ++judged;
      EXPECT_EQ(one.worst.text(), "20 % of a step waits for the slowest rank");
      EXPECT_DOUBLE_EQ(one.worst.ceiling().value(), 1.25);
    }
  EXPECT_EQ(judged, 1);
}

TEST(Diagnosis, WithoutAnythingToJudgeThereIsNoData) {
  const RunSet runs({});
  const auto all = diagnose(runs, shipped_rules());
  EXPECT_FALSE(all.empty());
  EXPECT_EQ(exit_code_of(all, RuleState::warn), ExitCode::no_data);
  EXPECT_EQ(diagnosis_json(all, {})["rules"][0]["state"], "not_judged");
}

TEST(Rules, MistakesAreNamedWithTheirPlace) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "rules.json";
  std::ofstream(path) << R"({"schema": 1, "rules": [
    {"id": "a", "evidence": "data_wait_shar", "warn": "5%", "bad": "3%", "says": "much", "fix": "", "sorce": "me"}]})";
  try {
    load_rules(path);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rules.json: /rules/0/evidence: "));
    EXPECT_THAT(error.what(), HasSubstr("data_wait_share"));
    EXPECT_THAT(error.what(), HasSubstr("/rules/0/bad: is below \"warn\""));
    EXPECT_THAT(error.what(), HasSubstr("/rules/0/says: does not contain {value}"));
    EXPECT_THAT(error.what(), HasSubstr("/rules/0/fix: is empty"));
    EXPECT_THAT(error.what(), HasSubstr("sorce"));
  }
}

}  // namespace
}  // namespace assay::report
