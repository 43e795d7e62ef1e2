// Which records make a series, what is left out and why, and efficiencies by hand.
#include "reports/scaling/series.h"
#include "reports/scaling/collectives.h"
#include "reports/scaling/ranks.h"
#include "tests/unit/reports/scaling/records.h"

#include <gtest/gtest.h>

namespace assay::report::scaling {
namespace {

SeriesSet series_of(std::vector<Record> records) {
  const RunSet runs(one_run(std::move(records)));
  return find_series(runs, Likenesses(runs));
}

// 1 x 8 / (2 x 5) = 0.8; arms hypot(ln 1.03, ln 1.04) = 0.0491121, a factor of 1.050338.
TEST(ScalingSeries, StrongEfficiencyByHand) {
  const SeriesSet found = series_of({step_record("strong", 1, 8, 1.03), step_record("strong", 2, 5, 1.04)});
  ASSERT_EQ(found.series.size(), 1u);
  EXPECT_TRUE(found.excluded.empty());
  const Estimate share = efficiency(found.series[0], 1);
  EXPECT_DOUBLE_EQ(share.value, 0.8);
  EXPECT_NEAR(share.interval->low, 0.8 / 1.050338, 1e-6);
  EXPECT_NEAR(share.interval->high, 0.8 * 1.050338, 1e-6);
  EXPECT_EQ(efficiency(found.series[0], 0).value, 1);
}

// From 2 ranks on: 2 x 6 / (6 x 2.5) = 0.8; weak: 3 / 4 = 0.75, and 3 / 2.4 = 1.25 if it gets faster.
TEST(ScalingSeries, BaseIsTheSmallestWorldSize) {
  const SeriesSet found =
      series_of({step_record("strong", 6, 2.5), step_record("strong", 2, 6), step_record("weak", 3, 3),
                 step_record("weak", 5, 4), step_record("weak", 7, 2.4)});
  ASSERT_EQ(found.series.size(), 2u);
  EXPECT_EQ(found.series[0].mode, Mode::strong);
  EXPECT_DOUBLE_EQ(efficiency(found.series[0], 1).value, 0.8);
  EXPECT_FALSE(efficiency(found.series[0], 1).interval);
  EXPECT_DOUBLE_EQ(efficiency(found.series[1], 1).value, 0.75);
  EXPECT_DOUBLE_EQ(efficiency(found.series[1], 2).value, 1.25);
}

TEST(ScalingSeries, ATitleNamesOnlyWhatVaries) {
  Likeness one, two;
  one.fill("same"), two.fill("same");
  const auto hardware = static_cast<std::size_t>(Aspect::hardware), labels = static_cast<std::size_t>(Aspect::labels);
  one[hardware] = "AMD Zen 5, 2 cores, 24 GiB, no GPU, AMD EPYC 9B45";
  two[hardware] = "AMD Zen 4, 2 cores, 24 GiB, no GPU, AMD EPYC 9R14";
  one[labels] = "implementation=onednn\nisa=avx512\n", two[labels] = "implementation=onednn\nisa=avx2\n";
  const std::vector<Likeness> all{one, two};
  EXPECT_EQ(distinction(one, all), ", AMD Zen 5, AMD EPYC 9B45, isa=avx512");
  EXPECT_EQ(distinction(two, all), ", AMD Zen 4, AMD EPYC 9R14, isa=avx2");
}

TEST(ScalingSeries, CommunicationIsAFractionOfTheStep) {
  Record two = step_record("weak", 2, 0.5);
  two.spans = {{"exposed_communication", 0.05}};
  const SeriesSet found = series_of({step_record("weak", 1, 0.4), two});
  EXPECT_DOUBLE_EQ(*found.series[0].points[1].communication, 0.1);
  EXPECT_FALSE(found.series[0].points[0].communication);
}

// In Assay's own records the protocol has the global batch, which differs over a weak series; what trials chose depends
// on the shapes of a rank's batch, and on chance.
TEST(ScalingSeries, TheProtocolsBatchDoesNotSplitASeries) {
  std::vector<Record> records;
  for (const int ranks : {1, 2, 4}) {
    Record weak = step_record("weak", ranks, 1), strong = step_record("strong", ranks, 1);
    weak.protocol = {{"form", "steps"},
                     {"global_batch", std::to_string(8 * ranks)},
                     {"micro_batch", "4"},
                     {"hash", fmt::format("w{}", ranks)}};
    strong.protocol = {{"form", "steps"},
                       {"global_batch", "8"},
                       {"micro_batch", std::to_string(4 / ranks)},
                       {"hash", fmt::format("s{}", ranks)}};
    weak.labels = {{"global_batch", std::to_string(8 * ranks)},
                   {"peak", fmt::format("of {}", ranks)},
                   {"choices", fmt::format("matmul algorithm {}", ranks)}};
    records.push_back(weak);
    records.push_back(strong);
  }
  const SeriesSet found = series_of(records);
  ASSERT_EQ(found.series.size(), 2u);
  EXPECT_EQ(found.series[0].points.size(), 3u);
  EXPECT_EQ(found.series[1].points.size(), 3u);
}

// Keys with each rank's part of one global batch: 8 at 1 rank, 4 at 2.
TEST(ScalingSeries, StrongKeysWithOneGlobalBatchJoin) {
  std::vector<Record> records;
  for (const int ranks : {1, 2}) {
    Record record = step_record("strong", ranks, 8.0 / ranks);
    record.params["micro_batch"] = 4 / ranks;
    record.key = fmt::format("transformer/micro_batch={}/accumulate=2/scaling=strong", 4 / ranks);
    record.labels["global_batch"] = "8";
    records.push_back(record);
  }
  EXPECT_EQ(series_of(records).series.size(), 1u);
  records[1].labels["global_batch"] = "4";
  const SeriesSet found = series_of(records);
  EXPECT_TRUE(found.series.empty());
  ASSERT_EQ(found.excluded.size(), 1u);
  EXPECT_NE(found.excluded[0].reason.find("different global batch (4 instead of 8)"), std::string::npos)
      << found.excluded[0].reason;
}

// 64, 32 and 16 samples per rank are 64 over 1, 2 and 4 ranks; device names that are only numbered are the same.
TEST(ScalingSeries, PartsOfOneBatchJoin) {
  std::vector<Record> records;
  for (const int ranks : {1, 2, 4}) {
    Record record = step_record("strong", ranks, 8.0 / ranks);
    record.labels.clear();
    record.protocol = Json::object();
    record.key = fmt::format("llama/model=m/micro_batch={}/accumulate=1/scaling=strong", 64 / ranks);
    record.params = {{"model", "m"}, {"micro_batch", 64 / ranks}, {"accumulate", 1}, {"scaling", "strong"}};
    record.ranks.clear();
    for (int rank = 0; rank < ranks; ++rank) record.ranks.push_back({rank, "h", fmt::format("cuda:{}", rank), 1.0});
    records.push_back(record);
  }
  const SeriesSet found = series_of(records);
  ASSERT_EQ(found.series.size(), 1u);
  EXPECT_TRUE(found.excluded.empty());
  EXPECT_EQ(found.series[0].points.size(), 3u);
  EXPECT_DOUBLE_EQ(efficiency(found.series[0], 2).value, 1);
}

TEST(ScalingSeries, KeysAloneAreEnough) {
  Record one = step_record("weak", 1, 1), two = step_record("weak", 2, 1.25);
  one.params = two.params = nullptr;
  const SeriesSet found = series_of({one, two});
  ASSERT_EQ(found.series.size(), 1u);
  EXPECT_DOUBLE_EQ(efficiency(found.series[0], 1).value, 0.8);
}

struct Stray {
  const char* name;
  void (*make)(Record&);
  const char* reason;
};

class ScalingStray : public testing::TestWithParam<Stray> {};

TEST_P(ScalingStray, IsLeftOutWithItsReason) {
  Record stray = step_record("strong", 4, 2.5);
  GetParam().make(stray);
  const SeriesSet found = series_of({step_record("strong", 1, 8), step_record("strong", 2, 5), stray});
  ASSERT_EQ(found.series.size(), 1u);
  EXPECT_EQ(found.series[0].points.size(), 2u);
  ASSERT_EQ(found.excluded.size(), 1u);
  EXPECT_EQ(found.excluded[0].ranks, std::vector<int>{4});
  EXPECT_NE(found.excluded[0].reason.find(GetParam().reason), std::string::npos) << found.excluded[0].reason;
}

INSTANTIATE_TEST_SUITE_P(
    All, ScalingStray,
    testing::Values(
        Stray{"protocol", [](Record& r) { r.protocol["max_seconds"] = 30; },
              "different protocol (max_seconds 30 instead of none)"},
        Stray{"batch", [](Record& r) { r.params["micro_batch"] = 8; }, "different global batch (16 instead of 8)"},
        Stray{"device", [](Record& r) { r.device = "cuda"; }, "different device (cuda instead of cpu)"},
        Stray{"seed", [](Record& r) { r.seed = 7; }, "different seed (7 instead of 0)"},
        Stray{"hardware",
              [](Record& r) {
                r.ranks = {{0, "h", "Zen 5", 1.0}};
              },
              "different hardware (Zen 5"},
        Stray{"threads", [](Record& r) { r.choices["threads"] = "2"; }, "different threads per rank (2"},
        Stray{"label", [](Record& r) { r.conditions["driver"] = "56"; }, "different label (driver 56 instead of none)"},
        Stray{"oversubscribed",
              [](Record& r) {
                r.flags = {"oversubscribed"};
                r.comparable = false;
              },
              "oversubscribed"},
        Stray{"shared",
              [](Record& r) {
                r.flags = {"shared_gpu"};
                r.comparable = false;
              },
              "not comparable: shared_gpu"},
        Stray{"injected", [](Record& r) { r.flags = {"injected:slow-rank"}; }, "injected"},
        Stray{"incomparable", [](Record& r) { r.comparable = false; }, "not comparable"},
        Stray{"failed",
              [](Record& r) {
                r.status = Status::failed;
                r.reason = "loss";
              },
              "failed: loss"},
        Stray{"skipped",
              [](Record& r) {
                r.status = Status::skipped;
                r.reason = "no GPU";
              },
              "skipped: no GPU"},
        Stray{"null", [](Record& r) { r.metrics[0].value.reset(); }, "no step_time in seconds"},
        Stray{"zero", [](Record& r) { r.metrics[0].value = 0; }, "no step_time in seconds"},
        Stray{"unit", [](Record& r) { r.metrics[0].unit = "ms"; }, "no step_time in seconds"}),
    [](const auto& stray) { return std::string(stray.param.name); });

// Labels from the user split a series; remarks of the cases do not.
TEST(ScalingSeries, LabelsOfTheRunMustBeEqual) {
  const auto series_with_label = [](const char* name) {
    std::vector<RunData> data;
    for (const int ranks : {1, 2}) {
      Record record = step_record("strong", ranks, 8.0 / ranks);
      record.labels = {{"rack", std::to_string(ranks)}};
      data.push_back(run_of({record}, fmt::format("r{}", ranks), {{"schema", 2}, {"labels", {{name, "x"}}}}));
    }
    const RunSet runs(std::move(data));
    return find_series(runs, Likenesses(runs));
  };
  EXPECT_EQ(series_with_label("other").series.size(), 1u);
  const SeriesSet split = series_with_label("rack");
  EXPECT_TRUE(split.series.empty());
  ASSERT_EQ(split.excluded.size(), 1u);
  EXPECT_EQ(split.excluded[0].reason, "different label (rack 2 instead of 1)");
}

// Two nodes are a second layout of the same world size.
TEST(ScalingSeries, OneLayoutPerWorldSize) {
  Record spread = step_record("strong", 2, 7);
  spread.world_nodes = 2;
  const SeriesSet found = series_of({step_record("strong", 1, 8), step_record("strong", 2, 5), spread});
  EXPECT_DOUBLE_EQ(efficiency(found.series[0], 1).value, 0.8);
  EXPECT_EQ(found.excluded[0].reason, "different layout: 2 ranks on 2 nodes instead of 1");
}

TEST(ScalingSeries, RunsArePooled) {
  std::vector<RunData> data;
  for (const double seconds : {4.0, 6.25})  // geometric mean 5
    data.push_back(
        run_of({step_record("strong", 1, 8), step_record("strong", 2, seconds)}, "r" + std::to_string(seconds)));
  const RunSet runs(std::move(data));
  const SeriesSet found = find_series(runs, Likenesses(runs));
  EXPECT_NEAR(found.series[0].points[1].time.value, 5, 1e-12);
  EXPECT_EQ(found.series[0].points[1].entries.size(), 2u);
  EXPECT_NEAR(efficiency(found.series[0], 1).value, 0.8, 1e-12);
}

TEST(ScalingSeries, SamplesReplaceAMissingMetric) {
  Record one = step_record("weak", 1, 1), two = step_record("weak", 2, 1), three = step_record("weak", 3, 1);
  for (Record* record : {&one, &two, &three}) record->metrics.clear();
  one.samples.values = {1, 1, 1, 1, 1, 1, 1, 1};  // no variance
  two.samples.values = {1.25};                    // one sample: no interval
  three.ranks = {{0, "a", "", 1.5}, {1, "b", "", 2.0}, {2, "c", "", std::nullopt}};
  for (Record* record : {&one, &two, &three}) record->device = "cpu";
  const SeriesSet found = series_of({one, two, three});
  ASSERT_EQ(found.series.size(), 1u);
  EXPECT_DOUBLE_EQ(efficiency(found.series[0], 1).value, 0.8);
  EXPECT_FALSE(efficiency(found.series[0], 1).interval);
  EXPECT_DOUBLE_EQ(efficiency(found.series[0], 2).value, 0.5);  // the slowest rank's
}

TEST(ScalingSeries, OneWorldSizeIsReported) {
  const SeriesSet found = series_of({step_record("weak", 2, 1)});
  EXPECT_TRUE(found.series.empty());
  ASSERT_EQ(found.lone.size(), 1u);
  EXPECT_EQ(found.lone[0].ranks, 2);
}

TEST(ScalingCollectives, NeverAcrossAlgorithms) {
  std::vector<Record> records;
  for (const double bytes : {8.0, 1024.0, 65536.0, 1048576.0}) {
    Record ring = collective_record("all_reduce", 4, bytes, 1e-6 + bytes / 1e9);
    Record tree = collective_record("all_reduce", 4, bytes, 2e-6 + bytes / 1e9);
    ring.choices["algorithm"] = "ring";
    tree.choices["algorithm"] = "tree";
    records.push_back(ring);
    records.push_back(tree);
  }
  const RunSet runs(one_run(records));
  const CollectiveSet found = find_collectives(runs, Likenesses(runs));
  // Separate runs: with equal identities the second record would be a later attempt.
  EXPECT_EQ(found.series.size(), 1u);
  std::vector<RunData> separate;
  separate.push_back(run_of({records[0], records[2], records[4], records[6]}, "ring"));
  separate.push_back(run_of({records[1], records[3], records[5], records[7]}, "tree"));
  const RunSet both(std::move(separate));
  const CollectiveSet two = find_collectives(both, Likenesses(both));
  ASSERT_EQ(two.series.size(), 2u);
  EXPECT_EQ(two.series[0].lines[0].points.size(), 4u);
  EXPECT_EQ(two.series[0].title, "all_reduce f32, algorithm=ring");
  ASSERT_EQ(two.excluded.size(), 1u);
  EXPECT_EQ(two.excluded[0].records, 4u);
}

TEST(ScalingCollectives, UsesTheActualSizes) {
  Record record = collective_record("all_gather", 3, 64, 1e-6);
  record.labels["bytes_used"] = "60";
  const RunSet runs(one_run({record, collective_record("all_gather", 1, 64, 1e-7)}));
  const CollectiveSet found = find_collectives(runs, Likenesses(runs));
  ASSERT_EQ(found.series.size(), 1u);
  EXPECT_EQ(found.series[0].lines[0].points[0].bytes, 60);
  EXPECT_EQ(found.excluded[0].reason, "one rank: a copy, no communication");
}

// 0.104 / 0.100 - 1 = 4 %.
TEST(ScalingRanks, SlowestRankAndItsHost) {
  Record record = step_record("weak", 3, 0.1);
  record.ranks = {{0, "a", "", 0.101}, {1, "b", "", 0.104}, {2, "a", "", 0.100}};
  Record alone = step_record("weak", 2, 0.1);
  alone.ranks = {{0, "a", "", 0.1}, {1, "b", "", std::nullopt}};
  const RunSet runs(one_run({record, alone}));
  const auto spreads = rank_spreads(runs, Likenesses(runs));
  ASSERT_EQ(spreads.size(), 1u);
  EXPECT_EQ(spreads[0].slowest_rank, 1);
  EXPECT_EQ(spreads[0].host, "b");
  EXPECT_NEAR(spreads[0].spread, 0.04, 1e-12);
  EXPECT_EQ(spreads[0].times_slowest, 1u);
}

}  // namespace
}  // namespace assay::report::scaling
