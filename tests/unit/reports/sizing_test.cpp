// Forecasts of training time and cost: known answers by hand, and published runs that the ranges must contain.
#include "reports/sizing/sizing.h"
#include "harness/core/configs.h"
#include "harness/json/json.h"
#include "reports/sizing/candidates.h"
#include "tests/unit/reports/sizing_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace assay::report::sizing {
namespace {

TEST(Sizing, TheLeastTimeIsTheLongestOfThree) {
  Work work = work_of();
  EXPECT_DOUBLE_EQ(least_seconds(small, work), 0.6);  // 6e13 / 1e14
  work.bytes = 8e11;
  EXPECT_DOUBLE_EQ(least_seconds(small, work), 0.8);
  work.exchanged = 1e11;
  EXPECT_DOUBLE_EQ(least_seconds(small, work), 1.0);
  // Offload goes over PCI Express, however fast other links are.
  work.offloaded = 4e10;
  EXPECT_DOUBLE_EQ(least_seconds(small, work), 1.0);
  HardwareSheet sheet = small;
  sheet.links.push_back({"PCIe 4 x16", 2e10});
  EXPECT_DOUBLE_EQ(least_seconds(sheet, work), 2.0);
}

TEST(Sizing, NothingIsKnownOfStepsThatOffloadButTheLeastTime) {
  Work work = work_of();
  work.offloaded = 1;
  const std::vector<HardwareSheet> sheets = {small};
  const std::vector<Measured> measured = {measured_on("small", 500, 8)};
  const StepTime step = forecast(small, sheets, measured, work, 8, four_runs());
  EXPECT_EQ(step.basis, Basis::sheet);
  EXPECT_EQ(step.seconds, (Range{0.6, std::nullopt}));
  EXPECT_FALSE(step.expected);
}

TEST(Sizing, TheUpperEndIsTheLeastPublishedUtilization) {
  const Published published = published_of();
  EXPECT_EQ(from_sheet(small, work_of(), 8, published).seconds, (Range{0.6, 2.4}));
  Published one = published;
  one.training.pop_back();
  EXPECT_FALSE(from_sheet(small, work_of(), 8, one).seconds.high);
  // Nothing is published: for this hardware, more GPUs, longer sequences, a larger or smaller model, this precision.
  EXPECT_EQ(from_sheet(large, work_of(), 8, published).seconds, (Range{0.2, std::nullopt}));
  EXPECT_FALSE(from_sheet(small, work_of(), 16, published).seconds.high);
  Work other = work_of();
  other.seq = 200;
  EXPECT_FALSE(from_sheet(small, other, 8, published).seconds.high);
  for (const auto& [parameters, known] : {std::pair{1.9e9, true}, {2.1e9, false}, {0.51e9, true}, {0.49e9, false}}) {
    other = work_of();
    other.parameters = parameters;
    EXPECT_EQ(from_sheet(small, other, 8, published).seconds.high.has_value(), known) << parameters;
  }
}

TEST(Sizing, ARecordCountsAsMeasuredAndLosesAtOtherWorlds) {
  const Measured measured = measured_on("small", 500, 8, Interval{400, 625});
  const Published published = published_of();
  EXPECT_EQ(from_record(measured, work_of(), 8, published).seconds, (Range{1.6, 2.5}));
  EXPECT_EQ(from_record(measured, work_of(), 16, published).seconds, (Range{1.6, 5}));
  EXPECT_EQ(from_record(measured, work_of(), 4, published).seconds, (Range{0.8, 2.5}));
}

TEST(Sizing, OtherHardwareIsWithinTheRatiosOfTheSheets) {
  const Measured measured = measured_on("small", 500, std::nullopt);
  const auto step = from_other(small, large, measured, work_of(), 8, published_of());
  ASSERT_TRUE(step);
  EXPECT_NEAR(step->seconds.low, 1000 / (500 * 3.0), 1e-12);
  EXPECT_NEAR(*step->seconds.high, 1000 / (500 * 1.5), 1e-12);
  EXPECT_EQ(step->basis, Basis::anchor);
  // One GPU uses no link, and nothing is faster than its sheet allows.
  EXPECT_NEAR(*from_other(small, large, measured, work_of(), 1, published_of())->seconds.high, 1, 1e-12);
  const auto fast = from_other(small, large, measured_on("small", 4000, std::nullopt), work_of(), 8, published_of());
  EXPECT_EQ(fast->seconds, (Range{0.2, 0.2}));
  HardwareSheet without = large;
  without.peak.clear();
  EXPECT_FALSE(from_other(small, without, measured, work_of(), 8, published_of()));
}

TEST(Sizing, TheBestBasisWins) {
  const std::vector<HardwareSheet> sheets = {small, large};
  const Published published = published_of();
  std::vector<Measured> measured;
  EXPECT_EQ(forecast(large, sheets, measured, work_of(), 8, published).basis, Basis::sheet);
  measured = {measured_on("small", 500, 8)};
  EXPECT_EQ(forecast(large, sheets, measured, work_of(), 8, published).basis, Basis::anchor);
  measured.push_back(measured_on("large", 900, 1));
  measured.push_back(measured_on("large", 800, 8));
  const StepTime step = forecast(large, sheets, measured, work_of(), 8, published);
  EXPECT_EQ(step.basis, Basis::records);
  EXPECT_EQ(step.seconds, (Range{1.25, 1.25}));
}

TEST(Sizing, HoursIncludeCheckpointsIdleTimeAndRestarts) {
  // 3600 steps of 1 to 2 s on 10 GPUs: 1 h (1 + 0 + 0.01 + 1e-3 x 10 x 2), 2 h (1 + 0.05 + 0.10 + 2e-3 x 10 x 2).
  const StepTime step{{1, 2}, Basis::sheet, {}};
  const Range hours = hours_of(step, work_of(), 10, 3600.0 * 10 * 1000, published_of());
  EXPECT_NEAR(hours.low, 1.03, 1e-12);
  EXPECT_NEAR(*hours.high, 2 * 1.19, 1e-12);
  EXPECT_FALSE(hours_of({{1, std::nullopt}, Basis::sheet, {}}, work_of(), 10, 1e6, published_of()).high);
}

TEST(Sizing, TheExpectedUtilizationIsTheMeanOfTheNearest) {
  const std::vector<HardwareSheet> sheets = {small, large};
  Published published = four_runs();
  auto expected = expected_utilization(small, sheets, work_of(), 8, published);
  ASSERT_TRUE(expected);
  EXPECT_NEAR(expected->value.value, std::sqrt(0.08), 1e-12);
  // From the three others each is off by 2^(2/3).
  const double factor = std::pow(2, 2.0 / 3);
  EXPECT_NEAR(expected->value.interval->low, std::sqrt(0.08) / factor, 1e-12);
  EXPECT_NEAR(expected->value.interval->high, std::sqrt(0.08) * factor, 1e-12);
  // One at four times the GPUs counts a third as much, as two doublings of GPUs are 2 away.
  published.training.push_back(run_on("small", 0.1, 32));
  const double sum = 2 * std::log(0.2) + 2 * std::log(0.4);
  expected = expected_utilization(small, sheets, work_of(), 8, published);
  EXPECT_NEAR(expected->value.value, std::exp((sum + std::log(0.1) / 3) / (4 + 1.0 / 3)), 1e-12);
  // There, it counts in full and the others a third.
  expected = expected_utilization(small, sheets, work_of(), 32, published);
  EXPECT_NEAR(expected->value.value, std::exp((sum / 3 + std::log(0.1)) / (1 + 4.0 / 3)), 1e-12);
}

// What is foretold from other hardware alone errs more, but says nothing about runs that have their own among the
// nearest.
TEST(Sizing, RunsThatAreForetoldFromOtherHardwareDoNotWidenWhatIsKnown) {
  const std::vector<HardwareSheet> sheets = {small, large};
  Published published = published_of();
  published.training.clear();
  for (int i = 0; i < 12; ++i) published.training.push_back(run_on("small", i % 2 == 0 ? 0.2 : 0.4));
  const auto width = [&](const HardwareSheet& sheet) {
    const Interval range = *expected_utilization(sheet, sheets, work_of(), 8, published)->value.interval;
    return range.high / range.low;
  };
  const double known = width(small);
  published.training.push_back(run_on("large", 0.01, 512));
  EXPECT_DOUBLE_EQ(width(small), known);
}

TEST(Sizing, APowerLimitLowersThePeak) {
  HardwareSheet sheet = small;
  sheet.tdp_watts = 800;
  const std::vector<HardwareSheet> sheets = {sheet};
  Published published = four_runs();
  for (PublishedRun& run : published.training) {
    run.mfu.reset(), run.tokens_per_gpu = 1;
    run.power_limit = 100;
  }
  const double limited = expected_utilization(sheet, sheets, work_of(), 8, published)->value.value;
  for (PublishedRun& run : published.training) run.power_limit = 900;  // above the TDP: none
  const double free = expected_utilization(sheet, sheets, work_of(), 8, published)->value.value;
  // Half the peak, so twice the utilization, less what the ratio of the peaks takes.
  EXPECT_NEAR(limited / free, 2 * std::pow(0.5, 0.2), 1e-9);
}

TEST(Sizing, NothingIsExpectedWhereNothingLikeItIsPublished) {
  const std::vector<HardwareSheet> sheets = {small, large};
  const Published published = four_runs();
  EXPECT_TRUE(expected_utilization(small, sheets, work_of(), 16, published));
  EXPECT_FALSE(expected_utilization(small, sheets, work_of(), 17, published));
  EXPECT_FALSE(expected_utilization(large, sheets, work_of(), 8, published));  // no other hardware to learn from
  EXPECT_FALSE(expected_utilization(small, sheets, work_of(), 8, published_of()));
  Work other = work_of();
  other.parameters = 2.1e9;
  EXPECT_FALSE(expected_utilization(small, sheets, other, 8, published));
  other = work_of();
  other.seq = 0;
  EXPECT_FALSE(expected_utilization(small, sheets, other, 8, published));
  HardwareSheet cpu = small;
  cpu.kind = "cpu";
  EXPECT_FALSE(expected_utilization(cpu, sheets, work_of(), 8, published));
}

TEST(Sizing, TheExpectedStepIsWithinTheBounds) {
  const std::vector<HardwareSheet> sheets = {small, large};
  const Published published = four_runs();
  StepTime step = forecast(small, sheets, {}, work_of(), 8, published);
  // 6e13 FLOPs at 1e14 x sqrt(0.08) a second; the slow end of the interval is beyond the slowest published run.
  EXPECT_NEAR(step.expected->value.value, 0.6 / std::sqrt(0.08), 1e-12);
  EXPECT_NEAR(step.expected->value.interval->high, 3, 1e-12);
  EXPECT_NEAR(step.expected->value.interval->low, 0.6 / std::sqrt(0.08) / std::pow(2, 2.0 / 3), 1e-12);
  // 3600 steps on one GPU: 1 + 0.01 + 1e-3 x 2 to 1 + 0.15 + 2e-3 x 2 times as long.
  step.expected->value = {1, Interval{0.5, 2}};
  const Estimate hours = *expected_hours(step, work_of(), 1, 3.6e6, published);
  EXPECT_NEAR(hours.value, (1.012 + 1.154) / 2, 1e-12);
  EXPECT_NEAR(hours.interval->low, 0.5 * 1.012, 1e-12);
  EXPECT_NEAR(hours.interval->high, 2 * 1.154, 1e-12);
}

TEST(Sizing, AMeasuredSpeedIsWhatIsExpectedThere) {
  const std::vector<HardwareSheet> sheets = {small, large};
  Published published = four_runs();
  published.training.push_back(run_on("small", 0.1, 32));
  const std::vector<Measured> measured = {measured_on("small", 500, 8, Interval{400, 625})};
  const auto at = [&](std::int64_t gpus) {
    return forecast(small, sheets, measured, work_of(), gpus, published).expected->value;
  };
  EXPECT_DOUBLE_EQ(at(8).value, 2);
  EXPECT_DOUBLE_EQ(at(8).interval->low, 1.6);
  // At 32 GPUs, times the ratio of what is published.
  const double sum = 2 * std::log(0.2) + 2 * std::log(0.4);
  const double ratio = std::exp((sum / 3 + std::log(0.1)) / (1 + 4.0 / 3) - (sum + std::log(0.1) / 3) / (4 + 1.0 / 3));
  EXPECT_NEAR(at(32).value, 2 / ratio, 1e-12);
}

Candidate candidate_of(const Range& hours, std::optional<double> usd_per_hour) {
  Candidate made;
  made.hours = hours;
  if (usd_per_hour) made.offer.emplace().usd_per_hour = *usd_per_hour;
  return made;
}

TEST(Sizing, OnlyRangesThatDoNotOverlapAreOrdered) {
  const Candidate a = candidate_of({1, 2}, 10), b = candidate_of({3, 4}, 10), c = candidate_of({1, 4}, 10);
  EXPECT_TRUE(surely_before(a, b));
  EXPECT_FALSE(surely_before(b, a));
  EXPECT_TRUE(not_ordered(a, c));
  EXPECT_TRUE(not_ordered(candidate_of({1, std::nullopt}, 10), b));
  EXPECT_TRUE(surely_before(a, candidate_of({3, std::nullopt}, 10)));
  // Faster and dearer, and with an unknown price.
  EXPECT_TRUE(surely_before(b, candidate_of({1, 2}, 50)));
  EXPECT_TRUE(not_ordered(a, candidate_of({100, 200}, std::nullopt)));
  EXPECT_TRUE(surely_before(candidate_of({1, 2}, std::nullopt), candidate_of({3, 4}, std::nullopt)));
  const std::vector<const Candidate*> all = {&a, &b, &c};
  EXPECT_EQ(place_of(a, all), 1u);
  EXPECT_EQ(place_of(b, all), 2u);
  EXPECT_EQ(place_of(c, all), 1u);
}

TEST(Sizing, BreakEvenByHand) {
  // The first costs 100 to 200; a runner-up of 10 to 20 h surely costs less below 100 / 20, more above 200 / 10.
  EXPECT_EQ(break_even({100, 200}, {10, 20}), (Range{5, 20}));
  EXPECT_EQ(break_even({100, std::nullopt}, {10, std::nullopt}), (Range{0, std::nullopt}));
}

TEST(Sizing, TheCheapestOffer) {
  PriceFile file;
  file.prices = {price_of("one", "SMALL", 1, 3), price_of("eight", "small", 8, 20), price_of("other", "large", 1, 1)};
  const std::vector<PriceFile> files = {file};
  EXPECT_EQ(cheapest(files, small, 1)->machine, "one");
  EXPECT_EQ(cheapest(files, small, 4)->machine, "eight");  // single GPUs do not work together
  const auto two = cheapest(files, small, 16);
  EXPECT_EQ(two->machines, 2);
  EXPECT_DOUBLE_EQ(two->usd_per_hour, 40);
  EXPECT_FALSE(cheapest(files, small, 12));
  EXPECT_FALSE(cheapest(files, large, 2));
  // The first file that has one wins, however dear.
  PriceFile own;
  own.prices = {price_of("own", "small", 8, 99)};
  EXPECT_EQ(cheapest(std::vector{own, file}, small, 8)->machine, "own");
  EXPECT_EQ(cheapest(std::vector{own, file}, large, 1)->machine, "other");
  Ownership node;
  node.name = "our node";
  node.gpu = "small";
  node.gpus = 8;
  node.capex = 8760;
  node.years = 1;
  own.owned = {node};
  const auto owned = cheapest(std::vector{own}, small, 8);
  EXPECT_TRUE(owned->owned);
  EXPECT_DOUBLE_EQ(owned->usd_per_hour, 1);
}

TEST(Sizing, TheCheapestThatHoldsMemoryAndIsFastEnough) {
  HardwareSheet slow = small, big = large;
  slow.memory_bytes = 24'000'000'000, big.memory_bytes = 80'000'000'000;
  const std::vector<HardwareSheet> sheets{slow, big};
  PriceFile file;
  file.prices = {price_of("one", "small", 1, 1), price_of("fast", "large", 1, 4)};
  const std::vector<PriceFile> files{file};
  const auto machine = [&](double bytes, double flops) {
    const auto found = cheapest_that_holds(files, sheets, 1, bytes, "bf16", flops);
    return found ? found->offer.machine : "none";
  };
  EXPECT_EQ(machine(24e9, 1e14), "one");
  EXPECT_EQ(machine(24.1e9, 1e14), "fast");  // by memory
  EXPECT_EQ(machine(1e9, 1.1e14), "fast");   // by speed
  EXPECT_EQ(machine(81e9, 0), "none");
  EXPECT_FALSE(cheapest_that_holds(files, sheets, 1, 1e9, "fp4", 1e14));  // nobody knows how fast
}

TEST(Sizing, PricesThatNoHardwareCanUseAreNamed) {
  PriceFile own;
  own.name = "own.json";
  own.prices = {price_of("box", "", 8, 1), price_of("half", "small", 0.5, 1), price_of("new", "X900", 8, 1),
                price_of("newer", "X900", 4, 1), price_of("good", "small", 8, 1)};
  for (std::size_t i = 0; i < own.prices.size(); ++i) own.prices[i].place = "/prices/" + std::to_string(i);
  const std::vector<HardwareSheet> sheets = {small, large};
  EXPECT_THAT(unused_prices(own, sheets),
              testing::UnorderedElementsAre(
                  "own.json: not used: an entry with neither \"gpu\" nor an instance type of the shipped lists, the "
                  "first at /prices/0 (box)",
                  "own.json: not used: an entry with no whole number of GPUs, the first at /prices/1 (half)",
                  "own.json: not used: 2 entries with GPUs that no hardware sheet describes (X900), the first at "
                  "/prices/2 (new)"));
  // The device's own name is as good as a catalogue's.
  own.prices = {price_of("good", "NVIDIA small", 8, 1)};
  EXPECT_TRUE(unused_prices(own, sheets).empty());
  EXPECT_TRUE(cheapest(std::vector{own}, small, 8));
}

TEST(Sizing, SpeedsAreReadPerRank) {
  Record slice = record_of("slice/model=m", 1, 1);
  slice.metrics = {test::metric("tokens_per_s", 300, "1/s", Interval{250, 330})};
  Record slices = record_of("slice/ranks", 1, 2);
  slices.metrics = {test::metric("predicted_throughput", 500, "tokens/s")};
  slices.params = {{"model", "models/m/config.json"}, {"precision", "bf16"}, {"seq", 100}};
  Record other = record_of("llama/a", 5, 1), broken = record_of("llama/b", 5, 1), longer = record_of("llama/c", 5, 1);
  other.params = {{"model", "n"}, {"precision", "bf16"}, {"seq", 100}};
  longer.params = {{"model", "m"}, {"precision", "bf16"}, {"seq", 200}};
  broken.status = Status::failed;
  std::vector<RunData> runs;
  runs.push_back(test::run_of(
      {record_of("llama/d", 4000, 8), slice, slices, other, broken, longer, record_of("llama/e", 1, 1, "unknown")}));
  const Speeds speeds = speeds_of(RunSet(std::move(runs)), "m", "bf16", 100, std::vector{small, large});
  ASSERT_EQ(speeds.measured.size(), 3u);
  EXPECT_DOUBLE_EQ(speeds.measured[0].items_per_gpu.value, 300);
  EXPECT_DOUBLE_EQ(speeds.measured[0].items_per_gpu.interval->low, 250);
  EXPECT_DOUBLE_EQ(speeds.measured[1].items_per_gpu.value, 250);
  EXPECT_EQ(speeds.measured[1].ranks, 2);
  EXPECT_DOUBLE_EQ(speeds.measured[2].items_per_gpu.value, 500);
  EXPECT_EQ(speeds.measured[2].ranks, 8);
  EXPECT_EQ(speeds.unknown_devices, std::vector<std::string>{"unknown"});
}

TEST(Sizing, KindsOfMachinesAreARangeNotAMean) {
  std::vector<RunData> runs;
  for (const auto& [type, speed] : {std::pair("p5", 8000.0), {"a3", 4000.0}})
    runs.push_back(test::run_of({record_of("llama/d", speed, 8)}, type, {{"labels", {{"instance_type", type}}}}));
  const Speeds speeds = speeds_of(RunSet(std::move(runs)), "m", "bf16", 100, std::vector{small, large});
  ASSERT_EQ(speeds.measured.size(), 1u);
  EXPECT_DOUBLE_EQ(speeds.measured[0].items_per_gpu.interval->low, 500);
  EXPECT_DOUBLE_EQ(speeds.measured[0].items_per_gpu.interval->high, 1000);
}

class ShippedSizing : public testing::Test {
 protected:
  Published published = read_published(configs_dir() / "sizing" / "published.json");
  std::vector<HardwareSheet> sheets = shipped_hardware();

  const HardwareSheet& sheet_named(const std::string& name) const {
    return *std::find_if(sheets.begin(), sheets.end(), [&](const auto& sheet) { return sheet.name == name; });
  }
  static Work like(const PublishedRun& run) {
    return {.items = 1,
            .seq = run.seq,
            .parameters = run.weights,
            .flops = run.flops_per_token(),
            .precision = run.precision};
  }
};

TEST_F(ShippedSizing, EveryRunNamesASheetAndIsPossible) {
  for (const PublishedRun& run : published.training) {
    ASSERT_TRUE(std::any_of(sheets.begin(), sheets.end(), [&](const auto& each) { return each.name == run.hardware; }))
        << run.hardware;
    const auto peak = peak_of(sheet_named(run.hardware), run.precision);
    ASSERT_TRUE(peak) << run.hardware << " " << run.precision;
    EXPECT_GT(run.utilization(*peak), 0.1) << run.model << " " << run.source;
    EXPECT_LT(run.utilization(*peak), 0.7) << run.model << " " << run.source;
  }
}

// Also most of them if the run itself is left out; then a range may have no upper end, but is hardly ever too narrow.
TEST_F(ShippedSizing, RangesContainPublishedRuns) {
  int checked = 0, without = 0, slower = 0;
  for (std::size_t i = 0; i < published.training.size(); ++i) {
    const PublishedRun run = published.training[i];
    if (!run.tokens_per_gpu) continue;
    const HardwareSheet& sheet = sheet_named(run.hardware);
    const std::int64_t gpus = run.gpus.value_or(8);
    const double seconds = 1 / *run.tokens_per_gpu;
    const Range range = from_sheet(sheet, like(run), gpus, published).seconds;
    ASSERT_TRUE(range.high);
    EXPECT_LE(range.low, seconds) << run.model;
    EXPECT_GE(*range.high, seconds * (1 - 1e-12)) << run.model;
    ++checked;
    Published others = published;
    others.training.erase(others.training.begin() + static_cast<std::ptrdiff_t>(i));
    const Range blind = from_sheet(sheet, like(run), gpus, others).seconds;
    without += blind.high && *blind.high >= seconds;
    slower += blind.high && *blind.high < seconds;
  }
  EXPECT_GE(checked, 20);
  EXPECT_GE(without, checked / 2);
  EXPECT_LE(slower, 2);
}

// On 32 GPUs KempnerForge kept half of the part of the peak that it had on 4.
TEST_F(ShippedSizing, PublishedLossesOfMoreGpusEnter) {
  Work work{.items = 1, .seq = 4096, .parameters = 8e9, .flops = 5e10, .precision = "bf16"};
  const auto at = [&](std::int64_t gpus) {
    return expected_utilization(sheet_named("h200-sxm"), sheets, work, gpus, published)->value.value;
  };
  EXPECT_LT(at(32), 0.8 * at(4));
  EXPECT_GT(at(32), 0.238);
  EXPECT_LT(at(4), 0.475);
}

// docs/sizing.md quotes what this prints.
TEST_F(ShippedSizing, WhatIsExpectedHoldsForRunsThatAreLeftOut) {
  const std::vector<PriceFile> files = price_files(std::nullopt);
  const LeftOut found = leave_one_out(sheets, published, [&](const std::string& hardware) -> std::optional<double> {
    constexpr std::int64_t gpus = 8;
    const auto offer = cheapest(files, sheet_named(hardware), gpus);
    return offer ? std::optional(offer->usd_per_hour / gpus) : std::nullopt;
  });
  const double pairs = std::max(1, found.pairs);
  std::printf(
      "left out in turn: %d of %d runs within the range (%.0f %%), median width %.2f, median error %.1f %%; cheaper of "
      "%d pairs: right or tied %.1f %%, tied %.1f %%\n",
      found.held, found.runs, 100.0 * found.held / found.runs, found.width, 100 * found.error, found.pairs,
      100 * (found.right + found.tied) / pairs, 100 * found.tied / pairs);
  EXPECT_GE(found.runs, 30);
  EXPECT_GE(found.held, 0.9 * found.runs);
  EXPECT_LE(found.width, 2);
  EXPECT_LE(found.error, 0.25);
  EXPECT_GE(found.pairs, 100);
  EXPECT_GE(found.right + found.tied, 0.95 * found.pairs);
  EXPECT_LE(found.tied, 0.4 * found.pairs);
}

// The same software and model on two machines: the peaks alone would say 3.17 where fms-fsdp measured 2.55.
TEST_F(ShippedSizing, AnchorsReachWhatTheSameSoftwareMeasured) {
  int pairs = 0;
  for (const PublishedRun& from : published.training)
    for (const PublishedRun& to : published.training) {
      const bool same = from.model == to.model && from.seq == to.seq && from.precision == to.precision &&
                        from.source.substr(0, 7) == to.source.substr(0, 7) && from.tokens_per_gpu && to.tokens_per_gpu;
      if (!same || from.hardware != "a100-sxm-80gb" || to.hardware != "h100-sxm") continue;
      const Measured anchor = measured_on(from.hardware, *from.tokens_per_gpu, std::nullopt);
      const auto step =
          from_other(sheet_named(from.hardware), sheet_named(to.hardware), anchor, like(to), 8, published);
      EXPECT_LE(step->seconds.low, 1 / *to.tokens_per_gpu) << to.model;
      EXPECT_GE(*step->seconds.high, 1 / *to.tokens_per_gpu) << to.model;
      ++pairs;
    }
  EXPECT_GE(pairs, 5);
  EXPECT_NEAR(*peak_of(sheet_named("h100-sxm"), "bf16") / *peak_of(sheet_named("a100-sxm-80gb"), "bf16"), 3.17, 0.005);
}

TEST_F(ShippedSizing, NoNameStandsForTwoSheets) {
  std::set<std::string> names;
  for (const HardwareSheet& sheet : sheets)
    for (const std::string& name : sheet.sold_as) EXPECT_TRUE(names.insert(name).second) << name;
  EXPECT_GE(names.size(), 10u);
}

TEST_F(ShippedSizing, PricesFindTheirSheets) {
  const std::vector<PriceFile> files = price_files(std::nullopt);
  for (const auto& [name, machine] : {std::pair{"h100-sxm", "gpu-h100-sxm_8gpu-128vcpu-1600gb"},
                                      {"a100-sxm-80gb", "p4de.24xlarge"},
                                      {"a100-sxm-40gb", "p4d.24xlarge"},
                                      {"h200-sxm", "gpu-h200-sxm_8gpu-128vcpu-1600gb"},
                                      {"mi300x", "BM.GPU.MI300X.8"}}) {
    const auto offer = cheapest(files, sheet_named(name), 8);
    ASSERT_TRUE(offer) << name;
    EXPECT_EQ(offer->machine, machine);
  }
}

}  // namespace
}  // namespace assay::report::sizing
