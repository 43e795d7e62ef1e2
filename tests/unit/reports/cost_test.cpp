// Costs of results, computed by hand.
#include "reports/cost/cost.h"

#include "harness/core/error.h"
#include "reports/cost/lines.h"
#include "tests/support/blocks.h"
#include "tests/support/refusal.h"
#include "tests/unit/reports/cost_fixtures.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {
namespace {

using test::cell;
using test::table_of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Entry entry_of(const RunSet& set) { return set.entries().front(); }

std::string texts_of(const std::vector<Section>& sections) {
  std::string all;
  for (const Section& section : sections)
    for (const Block& block : section.blocks) {
      if (const auto* text = std::get_if<Text>(&block)) all += text->text + "\n";
      if (const auto* list = std::get_if<List>(&block))
        for (const std::string& item : list->items) all += item + "\n";
    }
  return all;
}

TEST(Owned, FormulaByHand) {
  Ownership owned;
  owned.capex = 325000;
  owned.residual = 0.30;
  owned.years = 3;
  owned.cost_of_capital = 0.08;
  owned.power_kw = 10.2;
  owned.pue = 1.2;
  owned.usd_per_kwh = 0.083;
  owned.colocation = 2;
  owned.staff = 1.5;
  owned.utilisation = 0.8;
  // depreciation 325000 * 0.7 / 3 = 75833.333 per year, capital 26000 per year: 101833.333 / 8760 = 11.624810 per hour
  // energy 10.2 * 1.2 * 0.083 = 1.015920; with 3.5: 16.140730; at 80 %: 20.175912; of 8 GPUs: 2.521989 per GPU-hour
  EXPECT_NEAR(usd_per_useful_hour(owned), 20.175912, 1e-6);
  EXPECT_NEAR(usd_per_useful_hour(owned) / 8, 2.521989, 1e-6);
  EXPECT_EQ(not_counted(owned), "");
}

TEST(Owned, AbsentInputsAreListedAsNotCounted) {
  Ownership owned;
  owned.capex = 87600;
  owned.years = 2;
  owned.pue = 1;
  // 87600 / 2 / 8760 = 5 USD per hour.
  EXPECT_DOUBLE_EQ(usd_per_useful_hour(owned), 5);
  EXPECT_EQ(not_counted(owned), "cost of capital, residual value, colocation, staff, idle hours");
}

TEST(Results, IntervalsOfRatesSwapTheirEnds) {
  const RunSet set({run_on("box", {training({test::metric("throughput", 1000, "tokens/s", Interval{800, 1250})})})});
  const std::vector<Result> results = results_of(entry_of(set));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].per, "million tokens");
  // 1e6 / 1000 = 1000 s; from 1e6 / 1250 = 800 s to 1e6 / 800 = 1250 s.
  EXPECT_DOUBLE_EQ(results[0].seconds, 1000);
  EXPECT_DOUBLE_EQ(results[0].ci95->low, 800);
  EXPECT_DOUBLE_EQ(results[0].ci95->high, 1250);
}

TEST(Results, EachKindByItsMetric) {
  Record images = training({test::metric("throughput", 500, "img/s"), test::metric("model_flops", 2e12, "FLOP/s")});
  images.conditions["epoch_samples"] = "100000";
  Record quality = training({test::metric("time_to_quality", 90, "s", Interval{80, 100})});
  Record tokens = training({test::metric("throughput", 4096, "tokens/s")});
  tokens.conditions["epoch_samples"] = "1000";
  tokens.conditions["seq"] = "512";
  Record gemm;
  gemm.family = "gemm";
  gemm.metrics = {test::metric("throughput", 4e11, "FLOP/s")};
  Record memory;
  memory.family = "memory";
  memory.metrics = {test::metric("bandwidth", 4e10, "B/s")};
  const auto of = [](Record record) {
    std::vector<std::pair<std::string, double>> all;
    const RunSet set({run_on("box", {std::move(record)})});
    for (const Result& result : results_of(entry_of(set))) all.emplace_back(result.per, result.seconds);
    return all;
  };
  using Pair = std::pair<std::string, double>;
  // 1e6 / 500 = 2000 s; 1e5 / 500 = 200 s per epoch; 1e18 / 2e12 = 5e5 s.
  EXPECT_THAT(of(images), ElementsAre(Pair{"million images", 2000}, Pair{"epoch", 200}, Pair{"EFLOP", 5e5}));
  EXPECT_THAT(of(quality), ElementsAre(Pair{"run to quality", 90}));
  // 1000 sequences of 512 tokens: 512000 / 4096 = 125 s.
  EXPECT_THAT(of(tokens), ElementsAre(Pair{"million tokens", 1e6 / 4096}, Pair{"epoch", 125}));
  EXPECT_THAT(of(gemm), ElementsAre(Pair{"EFLOP", 2.5e6}));
  EXPECT_THAT(of(memory), IsEmpty());
}

TEST(Results, RepetitionsCountByMeanNotMedian) {
  Record gemm;
  gemm.family = "gemm";
  gemm.protocol = {{"form", "repeat"}};
  gemm.samples.values = {1, 1, 1, 5};  // median 1, mean 2: one stall
  gemm.metrics = {test::metric("throughput", 1e18, "FLOP/s")};
  const RunSet set({run_on("box", {gemm})});
  EXPECT_DOUBLE_EQ(results_of(entry_of(set)).front().seconds, 2);
}

TEST(Results, ImpossibleValuesAreSkipped) {
  for (const double value : {0.0, -5.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const RunSet set({run_on("box", {training({test::metric("throughput", value, "tokens/s")})})});
    EXPECT_THAT(results_of(entry_of(set)), IsEmpty()) << value;
  }
  const RunSet set({run_on("box", {training({test::metric("throughput", 10, "tokens/s", Interval{-1, 21})})})});
  EXPECT_FALSE(results_of(entry_of(set)).front().ci95) << "an interval that reaches 0 bounds no cost";
}

TEST(Power, OfCountersAndSeriesOverTheWindow) {
  Record record = training({test::metric("throughput", 100, "tokens/s")});
  record.samples.at = {10, 11, 12, 13};
  record.samples.values = {1, 1, 1, 1};  // the window: 10 s to 14 s
  record.telemetry["package_energy"] = {"J", {0, 8, 12, 16}, {0.0, 800.0, 1200.0, 2000.0}};
  // At 10 s 1000 J, at 14 s 1600 J: 150 W. A million tokens take 10,000 s: 1.5 MJ.
  const auto power = power_of(record);
  ASSERT_EQ(power.size(), 1u);
  EXPECT_EQ(power[0].sensor, "CPU package energy");
  EXPECT_DOUBLE_EQ(power[0].watts, 150);

  record.telemetry.clear();
  record.telemetry["gpu_power"] = {"W", {9, 10, 12, 14, 15}, {1.0, 600.0, std::nullopt, 700.0, 1.0}};
  const auto gpu = power_of(record);
  ASSERT_EQ(gpu.size(), 1u);
  EXPECT_EQ(gpu[0].sensor, "GPU energy");
  EXPECT_DOUBLE_EQ(gpu[0].watts, 650);

  record.world_ranks = 8;
  EXPECT_THAT(power_of(record), IsEmpty()) << "one GPU of eight";
  record.world_ranks = 1;
  record.samples.values = {1e-3, 1e-3, 1e-3, 1e-3};
  record.samples.at = {10, 10.001, 10.002, 10.003};
  EXPECT_THAT(power_of(record), IsEmpty()) << "shorter than the sensors resolve";
  record.telemetry.clear();
  EXPECT_THAT(power_of(record), IsEmpty());
}

TEST(Cost, OfAnHourlyPriceByHand) {
  const RunSet set({run_on("box", {training({test::metric("throughput", 1000, "tokens/s", Interval{800, 1250})})})});
  const auto cost = cost_of(entry_of(set), box_price(7.2));
  ASSERT_TRUE(cost);
  // 7.2 USD per hour is 0.002 USD per second: 1000 s cost 2 USD, between 1.6 and 2.5.
  EXPECT_NEAR(cost->usd, 2, 1e-12);
  EXPECT_NEAR(cost->ci95->low, 1.6, 1e-12);
  EXPECT_NEAR(cost->ci95->high, 2.5, 1e-12);
  EXPECT_EQ(cost->per, "million tokens");
  EXPECT_EQ(cost->price.basis, Basis::on_demand);
  EXPECT_THAT(cost->warnings, IsEmpty());
}

TEST(Cost, TwoNodesCostTwice) {
  Record record = training({test::metric("throughput", 1000, "tokens/s")});
  record.world_nodes = 2;
  const RunSet set({run_on("box", {record})});
  EXPECT_NEAR(cost_of(entry_of(set), box_price(7.2))->usd, 4, 1e-12);
}

TEST(Cost, TwiceThePriceIsTwiceTheCost) {
  for (const double throughput : {0.3, 7.0, 1e6}) {
    const RunSet set({run_on("box", {training({test::metric("throughput", throughput, "tokens/s",
                                                            Interval{0.9 * throughput, 1.2 * throughput})})})});
    const auto once = cost_of(entry_of(set), box_price(3.7)), twice = cost_of(entry_of(set), box_price(7.4));
    EXPECT_DOUBLE_EQ(twice->usd, 2 * once->usd);
    EXPECT_DOUBLE_EQ(twice->ci95->low, 2 * once->ci95->low);
    EXPECT_DOUBLE_EQ(twice->ci95->high, 2 * once->ci95->high);
    EXPECT_LE(once->ci95->low, once->usd);
    EXPECT_GE(once->ci95->high, once->usd);
  }
}

TEST(Cost, UnusableRecordsHaveNoCost) {
  Record record = training({test::metric("throughput", 1000, "tokens/s")});
  std::vector<Record> bad(5, record);
  bad[0].status = Status::skipped;
  bad[1].status = Status::failed;
  bad[2].status = Status::error;
  bad[3].comparable = false;
  bad[3].flags = {"oversubscribed"};
  bad[4].flags = {"injected:slow-rank"};
  for (std::size_t i = 0; i < bad.size(); ++i) bad[i].key += fmt::format("/n={}", i);
  const RunSet set({run_on("box", bad)});
  for (const Entry& entry : set.entries()) EXPECT_FALSE(cost_of(entry, box_price(1))) << entry.record->key;
  EXPECT_THAT(cost_sections(set, box_price(1)), IsEmpty());
  bad.push_back(record);
  const RunSet one_good({run_on("box", bad)});
  const std::string text = texts_of(cost_sections(one_good, box_price(1)));
  EXPECT_THAT(text, HasSubstr("not comparable: oversubscribed: 1 record, first n1/records.jsonl line 4"));
  EXPECT_THAT(text, HasSubstr("a fault was injected: 1 record"));
}

TEST(Cost, IdleGpusArePricedAndReported) {
  Record record = training({test::metric("throughput", 1000, "tokens/s")});
  record.device = "cuda";
  record.world_ranks = 2;
  RunData run = run_on("box", {record});
  add_gpus(run, 8, "NVIDIA H100 80GB HBM3");
  const RunSet set({run});
  EXPECT_THAT(cost_of(entry_of(set), box_price(7.2))->warnings,
              ElementsAre("2 of 8 GPUs used; the whole machine is priced (pro rata it would be 0.25 of this)"));
  EXPECT_NEAR(cost_of(entry_of(set), box_price(7.2))->usd, 2, 1e-12);
}

// A run on a CPU that was labelled as an instance with eight H100.
TEST(Cost, ThePriceOfGpusThatTheRunHadNotIsAWarning) {
  const RunSet set({run_on("box", {training({test::metric("throughput", 1000, "tokens/s")})})});
  PriceSource prices = box_price(55.04);
  prices.files.front().prices.front().accelerator = "H100";
  prices.files.front().prices.front().accelerators = 8;
  const auto cost = cost_of(entry_of(set), prices);
  ASSERT_TRUE(cost);
  EXPECT_THAT(cost->warnings, testing::Contains("the price is for 8 x H100, the run used none"));
}

RunData at_speed(const std::string& host, double tokens, const std::string& started) {
  Record record = training({test::metric("throughput", tokens, "tokens/s", Interval{0.99 * tokens, 1.01 * tokens})});
  record.started = started;
  RunData run = run_on("box", {record}, host);
  run.run["started"] = started;
  return run;
}

TEST(Intervals, BetweenMachinesFromThreeOn) {
  // a: 900 s and 1100 s per million (mean 1000), b: 1100 s, c: 1200 s: mean 1100, s = 100, half 4.302653 * 100 /
  // sqrt(3) = 248.4138 s; at 0.002 USD per second 2.2 ± 0.4968276 USD.
  std::vector<RunData> runs = {
      at_speed("a", 1e6 / 900, "2026-01-10T00:00:00Z"), at_speed("a", 1e6 / 1100, "2026-01-10T01:00:00Z"),
      at_speed("b", 1e6 / 1100, "2026-01-10T02:00:00Z"), at_speed("c", 1e6 / 1200, "2026-01-10T03:00:00Z")};
  const RunSet three(runs);
  const auto sections = cost_sections(three, box_price(7.2));
  const Table& table = table_of(sections, "cost");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(cell(table, 0, "stands_for").text, "3 machines, 4 runs");
  EXPECT_EQ(cell(table, 0, "interval").data, "between machines");
  const Json usd = cell(table, 0, "usd").data;
  EXPECT_NEAR(usd["value"].get<double>(), 2.2, 1e-9);
  EXPECT_NEAR(usd["ci95"][0].get<double>(), 2.2 - 0.4968276, 1e-6);
  EXPECT_NEAR(usd["ci95"][1].get<double>(), 2.2 + 0.4968276, 1e-6);

  runs.pop_back();
  const RunSet two(runs);
  const auto separate = cost_sections(two, box_price(7.2));
  const Table& rows = table_of(separate, "cost");
  ASSERT_EQ(rows.rows.size(), 3u) << "two machines do not represent an instance type: one row per run";
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cell(rows, i, "stands_for").text, "one run");
    EXPECT_EQ(cell(rows, i, "interval").data, "within-run");
  }
}

TEST(Intervals, ThreeRunsOfOneMachineDoNotRepresentAnInstanceType) {
  const RunSet set({at_speed("a", 1e6 / 900, "2026-01-10T00:00:00Z"), at_speed("a", 1e6 / 1000, "2026-01-11T00:00:00Z"),
                    at_speed("a", 1e6 / 1100, "2026-01-12T00:00:00Z")});
  const auto sections = cost_sections(set, box_price(7.2));
  const Table& table = table_of(sections, "cost");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(cell(table, 0, "stands_for").text, "one machine, 3 runs");
  EXPECT_EQ(cell(table, 0, "interval").data, "between runs");
}

TEST(Intervals, ATimeIsNotNegative) {
  // 1000 s, 2000 s, 3000 s: 2000 ± 2484.138 s, of which nothing below 0; at 0.002 USD per second.
  const RunSet set({at_speed("a", 1e6 / 1000, "2026-01-10T00:00:00Z"),
                    at_speed("a", 1e6 / 2000, "2026-01-11T00:00:00Z"),
                    at_speed("a", 1e6 / 3000, "2026-01-12T00:00:00Z")});
  const auto sections = cost_sections(set, box_price(7.2));
  const Json usd = cell(table_of(sections, "cost"), 0, "usd").data;
  EXPECT_DOUBLE_EQ(usd["ci95"][0].get<double>(), 0);
  EXPECT_NEAR(usd["ci95"][1].get<double>(), 0.002 * 4484.138, 1e-5);
}

TEST(Sections, AMachineWithoutAPriceTakesOneLine) {
  const RunSet set({run_on("boxx", {training({test::metric("throughput", 1000, "tokens/s")})})});
  const auto sections = cost_sections(set, box_price(7.2));
  ASSERT_EQ(sections.size(), 1u);
  EXPECT_EQ(texts_of(sections),
            "No price for AMD Zen 4, boxx: no file has a price for \"boxx\"; the nearest name is \"box\". Give one: "
            "--price USD_PER_HOUR or --prices FILE.\n");
  const RunSet unnamed({run_on("", {training({test::metric("throughput", 1000, "tokens/s")})})});
  EXPECT_THAT(texts_of(cost_sections(unnamed, box_price(7.2))), HasSubstr("the run names no instance type"));
}

TEST(Sections, NothingToPriceGivesNoSection) {
  Record memory;
  memory.family = "memory";
  memory.metrics = {test::metric("bandwidth", 4e10, "B/s")};
  EXPECT_THAT(cost_sections(RunSet({run_on("box", {memory})}), box_price(1)), IsEmpty());
  EXPECT_THAT(cost_sections(RunSet(std::vector<RunData>{}), box_price(1)), IsEmpty());
}

TEST(Sections, EnergyNeedsNoPrice) {
  Record record = training({test::metric("throughput", 100, "tokens/s")});
  record.samples.at = {0, 1};
  record.samples.values = {1, 1};
  record.telemetry["package_energy"] = {"J", {0, 1, 2}, {0.0, 180.0, 360.0}};
  const auto sections = cost_sections(RunSet({run_on("", {record})}), box_price(1));
  const Table& table = table_of(sections, "energy");
  // 180 W for 10,000 s: 1.8 MJ, half a kWh.
  EXPECT_EQ(cell(table, 0, "sensor").text, "CPU package energy");
  EXPECT_NEAR(cell(table, 0, "energy").data["value"].get<double>(), 1.8e6, 1e-3);
  EXPECT_NEAR(cell(table, 0, "kwh").data["value"].get<double>(), 0.5, 1e-9);
}

TEST(Sections, OrderOfRunsDoesNotMatter) {
  std::vector<RunData> runs = {at_speed("a", 1000, "2026-01-10T00:00:00Z"), at_speed("b", 1100, "2026-01-10T00:00:01Z"),
                               at_speed("c", 900, "2026-01-10T00:00:02Z")};
  const auto rows = [](std::vector<RunData> of) {
    std::string all;
    const RunSet set(std::move(of));
    for (const Section& section : cost_sections(set, box_price(7.2)))
      for (const Block& block : section.blocks)
        if (const auto* table = std::get_if<Table>(&block))
          for (const auto& row : table->rows)
            for (const Cell& each : row) all += each.text + each.data.dump() + "|";
    return all;
  };
  const std::string before = rows(runs);
  std::reverse(runs.begin(), runs.end());
  runs.push_back(runs.front());  // and a copy
  EXPECT_EQ(rows(runs), before);
}

TEST(Flags, RefusalsSayWhatIsExpected) {
  const auto refusal = [](const PriceFlags& flags) { return test::refusal([&] { load_prices(flags); }); };
  EXPECT_THAT(refusal({.file = "x", .price = "1"}), HasSubstr("exclude each other"));
  for (const char* text : {"abc", "", "nan", "inf", "1e999", "12.3 EUR", "$3"})
    EXPECT_THAT(refusal({.file = {}, .price = text}), HasSubstr("--price")) << text;
  for (const char* text : {"-1", "0"})
    EXPECT_THAT(refusal({.file = {}, .price = text}), HasSubstr("not above 0")) << text;
  EXPECT_DOUBLE_EQ(*load_prices({.file = {}, .price = "12.3"}).given, 12.3);
}

TEST(Flags, AGivenPriceOverridesEveryFile) {
  PriceSource source = box_price(100);
  source.given = 7.2;
  const RunSet set({run_on("box", {training({test::metric("throughput", 1000, "tokens/s")})})});
  const auto cost = cost_of(entry_of(set), source);
  EXPECT_NEAR(cost->usd, 2, 1e-12);
  EXPECT_EQ(cost->price.basis, Basis::given);
}

TEST(Shipped, PricesAreReadAndMatched) {
  const PriceSource shipped = load_prices({});
  Record record = training({test::metric("throughput", 1e6, "tokens/s")});
  record.device = "cuda";
  record.world_ranks = 8;
  RunData run = run_on("p5.48xlarge", {record}, "n1", "us-east-1");
  add_gpus(run, 8, "NVIDIA H100 80GB HBM3");
  const MachinePrices prices = prices_of(run, shipped);
  ASSERT_EQ(prices.offers.size(), 3u);
  EXPECT_DOUBLE_EQ(*prices.offers[0].usd, 55.04);
  EXPECT_DOUBLE_EQ(*prices.offers[1].usd, 18);  // the middle of 10.2 and 25.8
  EXPECT_DOUBLE_EQ(prices.offers[1].range->low, 10.2);
  // 325000 * 0.7 / 3 / 8760 + 10.2 * 1.2 * 0.083 = 8.656773 + 1.015920
  EXPECT_NEAR(*prices.offers[2].usd, 9.672693, 1e-6);
  EXPECT_THAT(prices.offers[0].warnings, ElementsAre("price of 2025-06-01: more than 180 days older than the run"));
  EXPECT_THAT(prices.offers[2].warnings, Contains(HasSubstr("lower bound")));
}

}  // namespace
}  // namespace assay::report
