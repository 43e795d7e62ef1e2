// Floors that are learned: which figures count, what they become, and what is refused.
#include "harness/fitness/floors/learn.h"

#include "harness/fitness/floors/check.h"
#include "tests/support/refusal.h"
#include "tests/support/runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::fitness {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Deviations of six machines: mean 0, variance 1e-4 * 7 / 5.
const std::vector<double> spread{-0.015, -0.01, -0.005, 0.005, 0.01, 0.015};

using Change = std::function<void(Record&)>;

RunData run_on(const std::string& host, const std::string& started, std::vector<Record> records) {
  for (Record& record : records) {
    if (record.ranks.empty()) record.ranks.push_back({0, "", "AMD Zen 5", {}});
    for (RankResult& rank : record.ranks) rank.host = host;
  }
  return test::run_of(std::move(records), "run-" + host + started, {{"started", started}});
}

Record gemm(double value, double half = 0) {
  const auto range = half > 0 ? std::optional(Interval{value * std::exp(-half), value * std::exp(half)}) : std::nullopt;
  Record record = test::record_of("gemm/m=1", {test::metric("throughput", value, "FLOP/s", range)});
  record.protocol = {{"cache", "cold"}, {"min_samples", 30}, {"hash", "abc"}};
  record.conditions = {{"types", "f32"}};
  return record;
}

// One run of each of six machines.
std::vector<RunData> fleet(const Change& change = {}) {
  std::vector<RunData> runs;
  for (std::size_t i = 0; i < spread.size(); ++i) {
    Record record = gemm(1e12 * std::exp(spread[i]));
    if (change) change(record);
    runs.push_back(run_on(fmt::format("host-{}", i), fmt::format("2026-01-0{}T00:00:00Z", i + 1), {record}));
  }
  return runs;
}

LearnedFloors learn_from(std::vector<RunData> data, const LearnOptions& options = {}) {
  static std::vector<std::unique_ptr<RunSet>> kept;  // lessons point into them
  return learn(*kept.emplace_back(std::make_unique<RunSet>(std::move(data))), options);
}

// t(3, .99) = 4.5407 (of 5 degrees of freedom three are trusted); a new machine: variance 1.4e-4 (1 + 1/6).
TEST(Learn, TheFloorIsThePredictionLimitOfANewMachine) {
  const LearnedFloors learned = learn_from(fleet(), {.false_fail = 0.01});
  ASSERT_THAT(learned.cases, SizeIs(1));
  const LearnedFloor& floor = learned.cases.front();
  const double sigma = std::sqrt(1.4e-4), margin = 4.5407 * sigma * std::sqrt(7.0 / 6);
  EXPECT_NEAR(floor.median, 1e12, 1);
  EXPECT_NEAR(*floor.between, sigma, 1e-9);
  EXPECT_FALSE(floor.within);
  EXPECT_NEAR(*floor.limit / (1e12 * std::exp(-margin)), 1, 2e-4);
  EXPECT_LE(*floor.limit, 1e12 * std::exp(-margin));  // rounded to the side of fewer misses
  // 90 % of runs of a machine slower by this are below the limit: t(3, .9) = 1.6377.
  EXPECT_NEAR(*floor.loss, -std::expm1(-margin - 1.6377 * sigma * std::sqrt(7.0 / 6)), 5e-4);
  EXPECT_EQ(learned.code(), ExitCode::ok);
  EXPECT_EQ(learned.measured, "2026-01-01 to 2026-01-06");
}

TEST(Learn, TheIntervalOfARunLowersTheFloorAndCostsDetection) {
  const auto limit = [](double half) {
    const LearnedFloors learned = learn_from(fleet([&](Record& record) {
      Metric& metric = record.metrics.front();
      metric.ci95 = Interval{*metric.value * std::exp(-half), *metric.value * std::exp(half)};
    }));
    return std::pair{*learned.cases.front().limit, *learned.cases.front().loss};
  };
  const auto [sharp, found] = limit(1e-9);
  const auto [wide, less] = limit(0.02);
  EXPECT_NEAR(wide / sharp, std::exp(-0.02), 5e-4);
  EXPECT_NEAR((1 - less) / (1 - found), std::exp(-0.04), 1e-3);
}

TEST(Learn, ATimeGetsACeiling) {
  const LearnedFloors learned = learn_from(fleet([](Record& record) {
    record.metrics = {test::seconds("latency", 1e-6 * 1e12 / *record.metrics.front().value)};
  }));
  const LearnedFloor& floor = learned.cases.front();
  EXPECT_GT(*floor.limit, 1e-6);
  const Json file = floors_of(learned);
  EXPECT_DOUBLE_EQ(file["floors"][0]["at_most"].get<double>(), *floor.limit);
  EXPECT_FALSE(file["floors"][0].contains("at_least"));
  const LearnedFloors rate = learn_from(fleet());
  EXPECT_NEAR(*floor.loss, *rate.cases.front().loss, 1e-3);  // the same loss of speed
}

TEST(Learn, TheFileIsRefusedByRecordsMeasuredOtherwise) {
  const Json file = floors_of(learn_from(fleet()));
  const std::string path = testing::TempDir() + "learned-floors.json";
  std::ofstream(path) << file.dump();
  EXPECT_TRUE(is_learned(path));
  const Floors floors = load_floors(path);
  const auto verdict = [&](const Change& change) {
    const RunSet runs(fleet(change));
    return check(runs, floors, {}).results.front().verdict;
  };
  EXPECT_EQ(verdict({}), Fitness::pass);
  EXPECT_EQ(verdict([](Record& record) { *record.metrics.front().value *= 0.5; }), Fitness::fail);
  EXPECT_EQ(verdict([](Record& record) {
              record.protocol = {{"cache", "hot"}, {"min_samples", 30}, {"hash", "d"}};
            }),
            Fitness::unknown);
  EXPECT_EQ(verdict([](Record& record) { record.conditions["types"] = "bf16"; }), Fitness::unknown);
  EXPECT_EQ(verdict([](Record& record) { record.world_ranks = 2; }), Fitness::unknown);
  EXPECT_EQ(verdict([](Record& record) { record.choices["implementation"] = "other"; }), Fitness::pass);
}

TEST(Learn, TheFileIsForTheHardwareThatWasMeasured) {
  const auto on = [](const std::string& device) {
    return fleet([device](Record& record) {
      record.device = "cuda";
      record.ranks = {{0, "", device, 1.0}};
    });
  };
  const std::string path = testing::TempDir() + "learned-hardware.json";
  const Json file = floors_of(learn_from(on("NVIDIA H100 80GB HBM3")));
  EXPECT_EQ(file["hardware"], Json({"NVIDIA H100 80GB HBM3"}));
  std::ofstream(path) << file.dump();
  const Floors floors = load_floors(path);
  const auto refused = [&](const std::string& device) {
    const RunSet runs(on(device));
    EXPECT_EQ(check(runs, floors, {}).results.front().verdict == Fitness::pass, device == "NVIDIA H100 80GB HBM3");
    try {
      require_hardware_of(runs, floors);
    } catch (const UsageError&) {
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused("NVIDIA H100 80GB HBM3"));
  EXPECT_TRUE(refused("NVIDIA H200"));
  EXPECT_FALSE(refused(""));  // nothing is known, and nothing is judged
}

TEST(Learn, TheOrderOfRunsDoesNotMatter) {
  std::vector<RunData> turned = fleet();
  std::reverse(turned.begin(), turned.end());
  EXPECT_EQ(floors_of(learn_from(fleet())).dump(), floors_of(learn_from(std::move(turned))).dump());
}

TEST(Learn, FalseFailsOfTheFileAreSplitOverItsFloors) {
  const LearnedFloors learned = learn_from([] {
    std::vector<RunData> runs = fleet();
    for (RunData& run : runs)
      for (int i = 2; i <= 4; ++i) {
        Record more = run.records.front();
        more.key = fmt::format("gemm/m={}", i);
        run.records.push_back(more);
      }
    return runs;
  }());
  EXPECT_DOUBLE_EQ(learned.floor_rate, 1e-3 / 4);
  EXPECT_LT(*learned.cases.front().limit, *learn_from(fleet()).cases.front().limit);
}

TEST(Learn, WhatIsNoHealthyMeasurementDoesNotCount) {
  std::vector<RunData> runs = fleet();
  const auto add = [&](int i, const Change& change) {
    Record record = gemm(3e11);  // would drag any floor down
    change(record);
    runs.push_back(run_on(fmt::format("other-{}", i), fmt::format("2026-02-0{}T00:00:00Z", i), {record}));
  };
  add(1, [](Record& record) { record.flags = {"injected:slow-rank"}; });
  add(2, [](Record& record) { record.status = Status::failed; });
  add(3, [](Record& record) { record.comparable = false, record.flags = {"oversubscribed"}; });
  add(4, [](Record& record) { record.outside_cpu = OutsideCpu{2, 10, 0.5, 0, 0.0, {}, "x"}; });
  add(5, [](Record& record) { record.world_nodes = 2; });
  add(6, [](Record& record) { record.metrics.front().value = 0; });
  add(7, [](Record& record) { record.checks.push_back({"sum", false, {}, {}, {}}); });
  const LearnedFloors learned = learn_from(std::move(runs));
  EXPECT_EQ(*learned.cases.front().limit, *learn_from(fleet()).cases.front().limit);
  EXPECT_EQ(learned.cases.front().machines, 6U);
  for (const char* why : {"a fault was injected", "failed", "not comparable", "disturbed", "several hosts", "above 0"})
    EXPECT_THAT(learned.notes, Contains(HasSubstr(why))) << why;
}

TEST(Learn, DisturbedRecordsCountIfAskedFor) {
  const auto disturb = [](Record& record) { record.outside_cpu = OutsideCpu{2, 10, 0.5, 0, 0.0, {}, "x"}; };
  EXPECT_EQ(learn_from(fleet(disturb)).code(), ExitCode::no_data);
  EXPECT_EQ(learn_from(fleet(disturb), {.disturbed = true}).floors(), 1U);
}

TEST(Learn, TooFewMachinesAreSaid) {
  std::vector<RunData> two = fleet();
  two.resize(2);
  const LearnedFloors none = learn_from(std::move(two));
  EXPECT_EQ(none.code(), ExitCode::no_data);
  EXPECT_THAT(none.cases.front().reason, HasSubstr("too few machines: 2; at least 3"));
  // Three machines that differ by 2.5 % give no floor that finds 40 %.
  std::vector<RunData> three = fleet([](Record& record) {
    double& value = *record.metrics.front().value;
    value = 1e12 * std::pow(value / 1e12, 5);
  });
  three.resize(3);
  const LearnedFloors wide = learn_from(std::move(three));
  EXPECT_EQ(wide.code(), ExitCode::no_data);
  EXPECT_THAT(wide.cases.front().reason, HasSubstr("too few machines: 3; at 0.1 % false fails at least"));
  EXPECT_THAT(floors_of(wide)["floors"], IsEmpty());
}

TEST(Learn, AFloorFortyPercentBelowTheMedianCannotComeOut) {
  for (const double factor : {1.0, 2.0, 3.0, 3.3, 4.0, 5.0, 15.0, 30.0}) {
    const LearnedFloors learned = learn_from(fleet([&](Record& record) {
                                               double& value = *record.metrics.front().value;
                                               value = 1e12 * std::pow(value / 1e12, factor);
                                             }),
                                             {.outliers = Outliers::keep});
    const LearnedFloor& floor = learned.cases.front();
    if (floor.limit) {
      EXPECT_GT(*floor.limit, 0.6 * floor.median) << factor;
      EXPECT_LE(*floor.loss, 0.4) << factor;
    } else {
      EXPECT_FALSE(floor.reason.empty());
    }
    EXPECT_EQ(floor.limit.has_value(), factor < 3.4) << factor;
  }
}

std::vector<RunData> with_bad_machine() {
  std::vector<RunData> runs = fleet();
  runs.push_back(run_on("slow", "2026-02-01T00:00:00Z", {gemm(7e11)}));
  return runs;
}

TEST(Learn, AMachineApartIsNamedAndDoesNotDragTheFloorDown) {
  const LearnedFloors refused = learn_from(with_bad_machine());
  EXPECT_EQ(refused.code(), ExitCode::failed);
  EXPECT_EQ(refused.floors(), 0U);
  ASSERT_THAT(refused.apart, SizeIs(1));
  EXPECT_EQ(refused.apart.front().machine, "slow");
  EXPECT_NEAR(refused.apart.front().difference, -0.3, 0.01);
  const LearnedFloors without = learn_from(with_bad_machine(), {.outliers = Outliers::leave_out});
  EXPECT_EQ(*without.cases.front().limit, *learn_from(fleet()).cases.front().limit);
  EXPECT_THAT(without.machines, testing::Not(Contains("slow")));
  const LearnedFloors kept = learn_from(with_bad_machine(), {.outliers = Outliers::keep});
  EXPECT_FALSE(kept.cases.front().limit && *kept.cases.front().limit <= 0.6 * kept.cases.front().median);
}

// A machine that is out of line in one case is not trusted in another.
TEST(Learn, AMachineApartIsLeftOutOfAllCases) {
  std::vector<RunData> runs = with_bad_machine();
  for (RunData& run : runs) {
    Record more = gemm(2e12 * (1 + 0.01 * static_cast<double>(run.dir.string().size() % 3)));
    more.key = "gemm/m=2";
    more.ranks = run.records.front().ranks;
    run.records.push_back(more);
  }
  const LearnedFloors learned = learn_from(std::move(runs), {.outliers = Outliers::leave_out});
  for (const LearnedFloor& each : learned.cases) EXPECT_EQ(each.machines, 6U) << each.like->record->key;
}

std::vector<RunData> ten_runs() {
  std::vector<RunData> runs;
  for (int i = 0; i < 10; ++i)
    runs.push_back(
        run_on("host-0", fmt::format("2026-01-{:02}T00:00:00Z", i + 10), {gemm(1e12 * (1 + 0.01 * (i % 3)))}));
  return runs;
}

TEST(Learn, ARunOfOneMachineApartIsNamedAndLeftOutIfAsked) {
  const auto with_bad_run = [] {
    std::vector<RunData> runs = ten_runs();
    runs.push_back(run_on("host-0", "2026-02-01T00:00:00Z", {gemm(5e11)}));
    return runs;
  };
  const LearnedFloors named = learn_from(with_bad_run(), {.same_machine = true});
  EXPECT_EQ(named.code(), ExitCode::no_data);
  EXPECT_THAT(named.cases.front().reason, HasSubstr("1 of 11 runs stands apart, by 50 %"));
  EXPECT_THAT(named.cases.front().reason, HasSubstr("--outliers leave-out"));
  const LearnedFloors kept = learn_from(with_bad_run(), {.same_machine = true, .outliers = Outliers::keep});
  EXPECT_THAT(kept.cases.front().reason, testing::Not(HasSubstr("apart")));
  const LearnedFloors without = learn_from(with_bad_run(), {.same_machine = true, .outliers = Outliers::leave_out});
  EXPECT_EQ(*without.cases.front().limit, *learn_from(ten_runs(), {.same_machine = true}).cases.front().limit);
  EXPECT_THAT(without.notes, Contains(HasSubstr("left out: the false-fail rate is that of runs without")));
}

TEST(Learn, OneMachineGivesFloorsForItselfOnly) {
  const LearnedFloors refused = learn_from(ten_runs());
  EXPECT_EQ(refused.code(), ExitCode::no_data);
  EXPECT_THAT(refused.nothing, HasSubstr("all runs are of one machine, host-0"));
  const LearnedFloors learned = learn_from(ten_runs(), {.same_machine = true});
  ASSERT_EQ(learned.floors(), 1U);
  const LearnedFloor& floor = learned.cases.front();
  EXPECT_FALSE(floor.between);
  EXPECT_NEAR(*floor.within, 0.0087, 5e-4);
  EXPECT_EQ(floor.runs, 10U);
  const Json file = floors_of(learned);
  EXPECT_THAT(file["floors"][0]["source"].get<std::string>(),
              testing::AllOf(HasSubstr("one machine, host-0"), HasSubstr("for that machine only")));
  EXPECT_THAT(test::refusal([] { learn_from(fleet(), {.same_machine = true}); }), HasSubstr("6 machines: host-0"));
}

TEST(Learn, RunsThatDoNotCompareAreRefusedByName) {
  const auto refusal = [](const Change& change) {
    return test::refusal([&] {
      std::vector<RunData> runs = fleet();
      change(runs.back().records.front());
      learn_from(std::move(runs));
    });
  };
  EXPECT_THAT(refusal([](Record& record) {
                record.protocol = {{"cache", "hot"}, {"min_samples", 30}};
              }),
              testing::AllOf(HasSubstr("gemm/m=1: protocol cache is cold"), HasSubstr("and hot (run-host-5")));
  EXPECT_THAT(refusal([](Record& record) { record.conditions["types"] = "bf16"; }),
              HasSubstr("types is f32 (run-host-0"));
  EXPECT_THAT(refusal([](Record& record) {
                record.ranks = {{0, "host-5", "AMD Zen 3", {}}};
              }),
              testing::AllOf(HasSubstr("different hardware"), HasSubstr("AMD Zen 3 (host-5)")));
}

TEST(Learn, EqualFiguresStillLeaveRoom) {
  const LearnedFloors learned = learn_from(fleet([](Record& record) { record.metrics.front().value = 1e12; }));
  EXPECT_LT(*learned.cases.front().limit, 0.999e12);
}

}  // namespace
}  // namespace assay::fitness
