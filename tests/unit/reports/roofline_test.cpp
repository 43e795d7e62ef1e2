// Rooflines and MFU on small machines whose roofs and intensities are computed by hand.
#include "reports/roofline/roofline.h"

#include "reports/roofline/roofs.h"
#include "tests/support/blocks.h"
#include "tests/support/runs.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {
namespace {

using test::cell;
using test::run_of;

Record record_of(std::string family, Json params, const char* metric, double value, const char* unit,
                 std::optional<Interval> ci95 = {}) {
  std::string key = family;
  for (const auto& [name, one] : params.items()) key += "/" + name + "=" + one.dump();
  Record record = test::record_of(key, {test::metric(metric, value, unit, ci95)});
  record.params = std::move(params);
  return record;
}

Record gemm(const char* dtype, int size, double rate, std::optional<Interval> ci95 = {}) {
  return record_of("gemm", {{"dtype", dtype}, {"m", size}, {"n", size}, {"k", size}}, "throughput", rate, "FLOP/s",
                   ci95);
}

Record training(const char* precision, double flops, std::optional<Interval> ci95 = {}) {
  Record record =
      record_of("llama", {{"model", "llama-tiny"}, {"precision", precision}}, "model_flops", flops, "FLOP/s", ci95);
  record.metrics.push_back(test::seconds("step_time", 0.5));
  record.metrics.push_back(test::metric("planned_memory", 1e9, "B", {}, Better::lower));
  return record;
}

std::vector<Section> sections_of(std::vector<RunData> runs) { return roofline_sections(RunSet(std::move(runs))); }

// Roofs: 100 GFLOP/s (peak; the GEMM reaches 80) and 10 GB/s (triad at the largest size; the copy in cache is faster
// but does not count). Ridge 10 FLOP/B. GEMM 1024 f32: 2 x 1024^3 / (3 x 4 x 1024^2) = 170.667 FLOP/B, 80 % of the
// roof. Triad: 2 / 24 FLOP/B, 0.8333 GFLOP/s, on its roof. Training: 40e9 x 0.5 / 1e9 = 20 FLOP/B, 40 % of 100.
TEST(Roofline, DrawsRatesUnderMeasuredRoofs) {
  const auto sections = sections_of({run_of(
      {record_of("peak", {{"dtype", "f32"}}, "throughput", 100e9, "FLOP/s"), gemm("f32", 1024, 80e9),
       record_of("memory", {{"op", "triad"}, {"bytes", 1 << 28}}, "bandwidth", 10e9, "B/s"),
       record_of("memory", {{"op", "copy"}, {"bytes", 1 << 15}}, "bandwidth", 50e9, "B/s"), training("f32", 40e9)})});
  const auto* table = test::find_block<Table>(sections, "roofline-1-cpu-f32-table");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_NEAR(cell(*table, 0, "intensity").data["value"], 170.6667, 1e-3);
  EXPECT_DOUBLE_EQ(cell(*table, 0, "of_roof").data, 0.8);
  EXPECT_EQ(cell(*table, 0, "bound").text, "compute");
  EXPECT_NEAR(cell(*table, 1, "rate").data["value"], 10e9 / 12, 1);
  EXPECT_NEAR(cell(*table, 1, "of_roof").data.get<double>(), 1, 1e-12);
  EXPECT_EQ(cell(*table, 1, "bound").text, "memory");
  EXPECT_DOUBLE_EQ(cell(*table, 2, "intensity").data["value"], 20);
  EXPECT_DOUBLE_EQ(cell(*table, 2, "of_roof").data, 0.4);
  const auto* figure = test::find_block<Figure>(sections, "roofline-1-cpu-f32");
  ASSERT_TRUE(figure);
  ASSERT_EQ(figure->curves.size(), 4u);  // measured roof, GEMM, memory, training
  ASSERT_EQ(figure->curves[0].points.size(), 3u);
  EXPECT_DOUBLE_EQ(figure->curves[0].points[1].x, 10);
  EXPECT_DOUBLE_EQ(figure->curves[0].points[1].y, 100e9);
  EXPECT_TRUE(figure->x.logarithmic && figure->y.logarithmic);
}

// int8 at 100 cubed as u8 x s8 -> s32: 2e6 / (1e4 + 1e4 + 4e4) = 33.33 FLOP/B.
TEST(Roofline, CountsBytesByTheTypesUsed) {
  Record record = gemm("int8", 100, 1e9);
  record.conditions["types"] = "u8 x s8 -> s32";
  const auto sections = sections_of({run_of({record})});
  const auto* table = test::find_block<Table>(sections, "roofline-1-cpu-int8-table");
  ASSERT_TRUE(table);
  EXPECT_NEAR(cell(*table, 0, "intensity").data["value"], 100.0 / 3, 1e-9);
}

// 40 / 80 = 0.5. Half widths of 2 % and 1.5 %: sqrt(2^2 + 1.5^2) = 2.5 % of 0.5, so 0.4875 to 0.5125.
TEST(Roofline, MfuIsRelativeToTheBestGemmOfTheSameRun) {
  const auto sections =
      sections_of({run_of({gemm("bf16", 512, 60e9), gemm("bf16", 1024, 80e9, Interval{78.8e9, 81.2e9}),
                           gemm("f32", 1024, 200e9), training("bf16", 40e9, Interval{39.2e9, 40.8e9})})});
  const auto* table = test::find_block<Table>(sections, "mfu");
  ASSERT_TRUE(table);
  const Json& mfu = cell(*table, 0, "mfu_gemm").data;
  EXPECT_DOUBLE_EQ(mfu["value"], 0.5);
  EXPECT_NEAR(mfu["ci95"][0].get<double>(), 0.4875, 1e-12);
  EXPECT_NEAR(mfu["ci95"][1].get<double>(), 0.5125, 1e-12);
}

TEST(Roofline, AGemmOfAnotherRunIsNotAPeakForMfu) {
  const auto sections = sections_of({run_of({gemm("bf16", 1024, 80e9)}, "run", {{"started", "2026-01-01T00:00:00Z"}}),
                                     run_of({training("bf16", 40e9)}, "run", {{"started", "2026-01-02T00:00:00Z"}})});
  const auto* table = test::find_block<Table>(sections, "mfu");
  ASSERT_TRUE(table);
  EXPECT_EQ(cell(*table, 0, "gemm").text, "no bf16 GEMM in this run");
  EXPECT_TRUE(cell(*table, 0, "mfu_gemm").data.is_null());
}

// Two GPUs together reach 4e14, one 2e14; the sheet of an H100 SXM has 9.89e14 for bf16: 20.2 %.
TEST(Roofline, FiguresArePerGpuAndComparedWithItsSheet) {
  Record record = training("bf16", 4e14);
  record.device = "cuda";
  record.world_ranks = 2;
  record.ranks = {{0, "a", "NVIDIA H100 80GB HBM3", {}}, {1, "a", "NVIDIA H100 80GB HBM3", {}}};
  const auto sections = sections_of({run_of({record})});
  const auto* table = test::find_block<Table>(sections, "mfu");
  ASSERT_TRUE(table);
  EXPECT_DOUBLE_EQ(cell(*table, 0, "model_flops").data["value"], 2e14);
  EXPECT_NEAR(cell(*table, 0, "mfu_sheet").data.get<double>(), 2e14 / 9.89e14, 1e-9);
}

// A metric of one of two ranks that share a host counts twice for the host; a metric of all ranks counts once.
TEST(Roofline, RanksOfACpuShareTheirHost) {
  Record record;
  record.world_ranks = 2;
  EXPECT_DOUBLE_EQ(units_of(record, false), 0.5);
  EXPECT_DOUBLE_EQ(units_of(record, true), 1);
  record.world_nodes = 2;
  EXPECT_DOUBLE_EQ(units_of(record, false), 1);
  EXPECT_DOUBLE_EQ(units_of(record, true), 2);
  record.device = "cuda";
  EXPECT_DOUBLE_EQ(units_of(record, false), 1);
  EXPECT_DOUBLE_EQ(units_of(record, true), 2);
}

TEST(Roofline, UnusableRecordsAreLeftOut) {
  Record injected_one = gemm("f32", 64, 1e9), shared = gemm("f32", 65, 1e9), zero = gemm("f32", 66, 0),
         none = gemm("f32", 0, 1e9);
  injected_one.flags = {"injected:slow-link"};
  shared.comparable = false;
  EXPECT_TRUE(sections_of({run_of({injected_one, shared, zero, none})}).empty());
  EXPECT_TRUE(sections_of({run_of({})}).empty());
  Record bare = training("f32", 1e9);
  bare.metrics.resize(1);  // no step time, no plan: no intensity, and no GEMM
  const auto sections = sections_of({run_of({bare})});
  EXPECT_FALSE(test::find_block<Figure>(sections, "roofline-1-cpu-f32"));
  EXPECT_TRUE(test::find_block<Table>(sections, "mfu"));
}

}  // namespace
}  // namespace assay::report
