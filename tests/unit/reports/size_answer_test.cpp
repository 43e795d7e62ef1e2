// Answers of `assay size`: what holds the model, ranked, and what is rejected.
#include "harness/json/json.h"
#include "reports/render/render.h"
#include "tests/unit/reports/sizing_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace assay::report::sizing {
namespace {

TEST(SizeFlags, CountsHaveUnits) {
  EXPECT_EQ(read_count("--tokens", "300B"), 3e11);
  EXPECT_EQ(read_count("--tokens", "2e12"), 2e12);
  for (const char* bad : {"0", "0.5", "2e18", "", "B", "300G"})
    EXPECT_THROW(read_count("--tokens", bad), UsageError) << bad;
}

TEST(SizeFlags, CountsOfGpusAreListsAndRangesWithThePowersOfTwoBetween) {
  EXPECT_EQ(read_gpus("8"), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(read_gpus("1..8"), (std::vector<std::int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(read_gpus("3..9"), (std::vector<std::int64_t>{3, 4, 8, 9}));
  EXPECT_EQ(read_gpus("64,8"), (std::vector<std::int64_t>{8, 64}));
  EXPECT_EQ(read_gpus("6,1..4,4"), (std::vector<std::int64_t>{1, 2, 4, 6}));
  for (const char* bad : {"8,", "8,,64", "8 64", "8..1", "0", "99999", "..", "1..", "a"})
    EXPECT_THROW(read_gpus(bad), UsageError) << bad;
}

// A model that needs 100 GiB, divided among the GPUs.
Planner planner_of_100_gib() {
  const auto on = [](const HardwareSheet& sheet, std::int64_t gpus) {
    parallel::Held held{.layout = {.dp = gpus, .zero = gpus > 1 ? 3 : 0}, .checkpointing = "none", .work = work_of()};
    held.total_bytes = (std::uint64_t{100} << 30) / gpus;
    held.fits = held.total_bytes <= *sheet.memory_bytes;
    return held;
  };
  return {.model = "m", .precision = "bf16", .seq = 100, .on = on, .fewest_above = [on](const auto& sheet, auto gpus) {
            for (std::int64_t more = gpus * 2; more <= 1024; more *= 2)
              if (on(sheet, more).fits) return std::optional(more);
            return std::optional<std::int64_t>();
          }};
}

// One training of 3.6e9 tokens: 3.6e6 steps on one GPU.
SizeRequest request_of(std::vector<std::int64_t> gpus) {
  SizeRequest request;
  request.items = 3.6e9;
  request.gpus = std::move(gpus);
  request.hardware = {small, large};
  request.hardware[0].memory_bytes = std::uint64_t{20} << 30;
  request.hardware[1].memory_bytes = std::uint64_t{60} << 30;
  request.sheets = request.hardware;
  request.published = published_of();
  PriceFile file;
  file.prices = {price_of("eight", "small", 8, 8), price_of("two", "large", 2, 6)};
  request.prices = {file};
  return request;
}

std::string text_of(const SizeAnswer& answer) {
  return render_terminal(document_of(answer), {.width = unlimited_columns});
}

TEST(SizeAnswer, RanksWhatHoldsTheModelByCost) {
  SizeRequest request = request_of({1, 2, 8});
  request.measured = {measured_on("small", 500, 8), measured_on("large", 900, 2)};
  const SizeAnswer answer = size(request, nullptr, planner_of_100_gib());
  // 8 of the small one take 3.6e9 / 4000 s at USD 8 an hour, 2 of the large one 3.6e9 / 1800 s at USD 6. 8 of the large
  // one have no price, as machines of two GPUs do not work together.
  ASSERT_EQ(answer.ranked.size(), 3u);
  EXPECT_EQ(answer.ranked[0].candidate.hardware, "small");
  EXPECT_EQ(answer.ranked[1].candidate.hardware, "large");
  EXPECT_FALSE(answer.ranked[2].candidate.offer);
  EXPECT_EQ(answer.ranked[1].held.layout.dp, 2);
  EXPECT_EQ(answer.best().size(), 2u);
  EXPECT_EQ(answer.code(), ExitCode::ok);
  ASSERT_EQ(answer.rejected.size(), 3u);
  EXPECT_EQ(answer.rejected[0].reason,
            "does not hold it: short by 80 GiB with micro_batch 1, zero 0, checkpointing none");
  EXPECT_EQ(answer.rejected[0].short_by_bytes, std::uint64_t{80} << 30);
  const Json json = to_json(answer);
  EXPECT_EQ(json["ranked"][0]["layout"].dump(), R"({"dp":8,"tp":1,"pp":1,"zero":3,"chunks":1,"ep":1,"cp":1})");
  EXPECT_EQ(json["ranked"][0]["price"]["machine"], "eight");
  EXPECT_EQ(json["rejected"][2]["hardware"], "large");
  EXPECT_THAT(text_of(answer), testing::HasSubstr("- small x 1 to 2: does not hold it: short by 30 GiB"));
}

TEST(SizeAnswer, IsOrderedByWhatIsLikely) {
  SizeRequest request = request_of({2, 8});
  request.hardware.erase(request.hardware.begin());
  request.hardware[0].memory_bytes = std::uint64_t{100} << 30;
  request.published = four_runs();
  for (PublishedRun& run : request.published.training) run.hardware = "large", run.gpus = 4;
  const SizeAnswer answer = size(request, nullptr, planner_of_100_gib());
  // Two GPUs have a price; eight, of machines of two, have none.
  ASSERT_EQ(answer.ranked.size(), 2u);
  EXPECT_EQ(answer.likely_place(answer.ranked[0]), 1u);
  EXPECT_FALSE(answer.likely_place(answer.ranked[1]));
  const double hours = 3.6e9 / 2000 / 3600 * 0.2 / std::sqrt(0.08) * (1 + (0.01 + 0.15 + 2 * 2 * 3e-3) / 2);
  EXPECT_NEAR(answer.ranked[0].candidate.expected_hours->value, hours, 1e-9 * hours);
  const Json json = to_json(answer)["ranked"][0];
  EXPECT_NEAR(json["expected"]["value"].get<double>(), 1000 * std::sqrt(0.08) / 0.2, 1e-9);
  EXPECT_NEAR(json["expected"]["usd"]["value"].get<double>(), 6 * hours, 1e-6 * hours);
  EXPECT_NEAR(json["expected"]["usd_per_million"]["value"].get<double>(), 6 * hours / 3600, 1e-6 * hours);
  EXPECT_THAT(text_of(answer), testing::HasSubstr("Likely cheapest: large x 2, USD "));
}

TEST(SizeAnswer, SaysWhatWouldFit) {
  const SizeAnswer answer = size(request_of({1}), nullptr, planner_of_100_gib());
  EXPECT_TRUE(answer.ranked.empty());
  EXPECT_EQ(answer.would, (std::vector<std::string>{"small x 8: --count 8", "large x 2: --count 2"}));
  EXPECT_EQ(answer.code(), ExitCode::failed);
  EXPECT_THAT(text_of(answer), testing::HasSubstr("nothing fits\n"));
}

TEST(SizeAnswer, LimitsRejectOnlyWhatSurelyMissesThem) {
  SizeRequest request = request_of({8});
  request.hardware.resize(1);
  request.measured = {measured_on("small", 500, 8)};
  const double hours = size(request, nullptr, planner_of_100_gib()).ranked.at(0).candidate.hours.low;
  request.deadline = hours * 0.99;
  const SizeAnswer late = size(request, nullptr, planner_of_100_gib());
  EXPECT_THAT(late.rejected.at(0).reason, testing::StartsWith("takes at least "));
  EXPECT_EQ(late.would.size(), 1u);
  request.deadline = hours * 1.01;
  request.budget = 8 * hours * 0.99;
  EXPECT_THAT(size(request, nullptr, planner_of_100_gib()).rejected.at(0).reason,
              testing::StartsWith("costs at least USD "));
  request.budget = 8 * hours * 1.01;
  EXPECT_EQ(size(request, nullptr, planner_of_100_gib()).code(), ExitCode::ok);
}

TEST(SizeAnswer, WhatCannotBeJudgedIsNotRejectedByJudgement) {
  SizeRequest request = request_of({8});
  request.hardware.resize(1);
  request.prices.clear();
  request.budget = 1e9;
  EXPECT_EQ(size(request, nullptr, planner_of_100_gib()).code(), ExitCode::no_data);
  request.budget.reset();
  request.hardware[0].memory_bytes.reset();
  EXPECT_EQ(size(request, nullptr, planner_of_100_gib()).code(), ExitCode::no_data);
  request.hardware[0].peak.clear();
  EXPECT_EQ(size(request, nullptr, planner_of_100_gib()).rejected.at(0).reason, "its sheet has no peak in bf16");
}

TEST(SizeAnswer, RunsWithoutASpeedOfTheModelAreNoData) {
  SizeRequest request = request_of({8});
  request.from = {"r"};
  std::vector<RunData> runs;
  runs.push_back(test::run_of({record_of("llama/a", 4000, 8)}));
  const RunSet set(std::move(runs));
  EXPECT_EQ(size(request, &set, planner_of_100_gib()).ranked.at(0).candidate.step.basis, Basis::records);
  Planner other = planner_of_100_gib();
  other.model = "n";
  try {
    (void)size(request, &set, other);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::no_data);
    EXPECT_STREQ(error.what(),
                 "size: --from: no figure that counts of n in bf16 at seq 100 on hardware with a sheet in r");
  }
}

}  // namespace
}  // namespace assay::report::sizing
