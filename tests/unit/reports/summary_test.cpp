#include "reports/page/page.h"

#include "harness/runs/figures.h"
#include "reports/model/cells.h"
#include "reports/render/render.h"
#include "reports/summary/verdict.h"
#include "tests/support/runs.h"

#include <gmock/gmock.h>

namespace assay::report {
namespace {

using testing::ElementsAre;

Record gemm_record() {
  Record record = test::record_of("gemm/dtype=f32/m=2048/n=2048/k=2048/transpose=nn/cache=cold/duration=burst",
                                  {test::metric("throughput", 4.12e11, "FLOP/s", Interval{4.10e11, 4.15e11})});
  record.metrics.front().of_peak = 0.97;
  record.params = {{"dtype", "f32"}, {"m", 2048}, {"n", 2048}, {"k", 2048}, {"transpose", "nn"}, {"cache", "cold"}};
  record.samples.count = 40;
  record.samples.disturbed = {3, 7};
  record.checks.push_back({"relative_error", true, 1e-7, 1e-5, {}});
  return record;
}

RunData measured_run(std::vector<Record> records) {
  return test::run_of(std::move(records), "runs/one",
                      {{"plan", {{"name", "quick"}}},
                       {"seconds", 141.0},
                       {"environment",
                        {{"cpu", {{"name", "AMD Zen 4"}, {"usable_cores", 2}}},
                         {"memory", {{"total_bytes", 24ll << 30}}},
                         {"gpus", Json::array()}}}});
}

Document summary_of(std::vector<RunData> runs) { return whole_report(RunSet(std::move(runs)), {}); }

TEST(Summary, NamesCasesForPeople) {
  EXPECT_EQ(case_title(gemm_record()), "gemm f32 2048 x 2048 x 2048");
  Record memory;
  memory.family = "memory";
  memory.params = {{"op", "triad"}, {"bytes", 2ll << 30}, {"store", "nontemporal"}, {"threads", "core"}};
  EXPECT_EQ(case_title(memory), "memory triad 2 GiB, non-temporal, one core");
  Record transfer;
  transfer.family = "transfer";
  transfer.params = {
      {"direction", "d2h"}, {"memory", "pinned"}, {"bytes", 1 << 30}, {"by", "engine"}, {"gpus", "each"}};
  EXPECT_EQ(case_title(transfer), "transfer d2h 1 GiB, pinned, by engine, each");
  Record other;
  other.family = "mystery";
  other.params = {{"x", 3}};
  EXPECT_EQ(case_title(other), "mystery x=3");
}

TEST(Summary, HeadlineHasMachinePlanAndTime) {
  EXPECT_EQ(machine_line(RunSet({measured_run({gemm_record()})}), 0),
            "AMD Zen 4, 2 cores, 24 GiB, no GPU · plan quick, 1 case in 2 min 21 s");
}

// Half width of [410, 415] around 412 GFLOP/s: max(3, 2) / 412 = 0.73 %.
TEST(Summary, RowHasFigureIntervalShareAndVerdict) {
  const std::string out = render_terminal(summary_of({measured_run({gemm_record()})}), {});
  EXPECT_NE(out.find("412"), std::string::npos);
  EXPECT_NE(out.find("GFLOP/s"), std::string::npos);
  EXPECT_NE(out.find("± 0.7 %"), std::string::npos);
  EXPECT_NE(out.find("97 %"), std::string::npos);
  EXPECT_NE(out.find("ok (2 disturbed)"), std::string::npos);
  EXPECT_NE(out.find("held: 1 · failed: 0 · skipped: 0"), std::string::npos);
}

// 412 GFLOP/s with an interval of more than its own width to a side, as 4,682 % once was printed beside "ok".
TEST(Summary, AFigureWhoseIntervalIsWiderThanItselfIsNotUsable) {
  Record record = gemm_record();
  const double value = record.metrics[0].value.value();
  record.metrics[0].ci95 = Interval{-45.82 * value, 47.82 * value};
  const Document document = summary_of({measured_run({record})});
  const std::string out = render_terminal(document, {});
  EXPECT_EQ(out.find("4682"), std::string::npos) << out;
  EXPECT_NE(out.find("no usable figure"), std::string::npos) << out;
  EXPECT_NE(out.find("ok, but no usable figure (2 di"), std::string::npos) << out;
  EXPECT_EQ(verdict_cell(record, &record.metrics[0]).tone, Tone::warn);
  EXPECT_EQ(precision_cell(&record.metrics[0]).tone, Tone::warn);
  record.metrics[0].ci95 = Interval{0.1 * value, 1.9 * value};
  EXPECT_EQ(verdict_cell(record, &record.metrics[0]).tone, Tone::good);
  EXPECT_EQ(precision_cell(&record.metrics[0]).text, "± 90 %");
}

// The columns of the samples' table, and its first row.
std::vector<std::string> samples_table(const Document& document) {
  std::vector<std::string> texts;
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks)
      if (const auto* table = std::get_if<Table>(&block); table && table->id == "samples") {
        for (const Column& column : table->columns) texts.push_back(column.id);
        for (const Cell& cell : table->rows.at(0)) texts.push_back(cell.text);
      }
  return texts;
}

TEST(Summary, ThrottledSamplesAreCountedWhereDisturbedOnesAre) {
  Record record = gemm_record();
  record.samples.values = {1e-3, 2e-3, 3e-3};
  record.samples.stopped_by = "time";
  EXPECT_EQ(samples_table(summary_of({measured_run({record})})).size(), 12u);  // no such column
  record.samples.throttled = {{1, 2}};
  Document document = summary_of({measured_run({record})});
  EXPECT_NE(render_terminal(document, {}).find("ok (2 disturbed; 2 throttled)"), std::string::npos);
  EXPECT_NE(render_html(document).find("2 disturbed; 2 throttled (median of the others 1 ms); stopped by time"),
            std::string::npos);
  std::vector<std::string> samples = samples_table(document);
  ASSERT_EQ(samples.size(), 16u);
  EXPECT_THAT(std::vector(samples.begin() + 6, samples.begin() + 8), ElementsAre("throttled", "unthrottled_median"));
  EXPECT_THAT(std::vector(samples.begin() + 14, samples.end()), ElementsAre("2", "1 ms"));
  record.samples.throttled = {{0, 1, 2}};
  EXPECT_EQ(samples_table(summary_of({measured_run({record})})).at(15), "–") << "no sample is left";
  record.samples.throttled.emplace();
  document = summary_of({measured_run({record})});
  EXPECT_EQ(render_terminal(document, {}).find("throttled"), std::string::npos);
  EXPECT_EQ(samples_table(document).at(14), "0");
}

TEST(Summary, FailuresAreListedWithCheckAndPlace) {
  Record record = gemm_record();
  record.status = Status::failed;
  record.checks.push_back({"wrong_elements", false, 3.0, 0.0, {"row 1, column 2: 5 for 4"}});
  const Document document = summary_of({measured_run({record})});
  EXPECT_EQ(document.tone, Tone::bad);
  const std::string out = render_terminal(document, {});
  EXPECT_NE(out.find("FAILED"), std::string::npos);
  EXPECT_NE(out.find("wrong_elements"), std::string::npos);
  EXPECT_NE(out.find("row 1, column 2: 5 for 4"), std::string::npos);
}

TEST(Summary, SkipsAndErrorsAreCounted) {
  Record skipped = gemm_record(), broken = gemm_record();
  skipped.key = "a";
  skipped.status = Status::skipped;
  skipped.reason = "no AMX";
  broken.key = "b";
  broken.status = Status::error;
  broken.reason = "killed by signal 9\nstderr tail";
  const Document document = summary_of({measured_run({skipped, broken})});
  EXPECT_EQ(document.verdict, "held: 0 · failed: 0 · broken: 1 · skipped: 1");
  const std::string out = render_terminal(document, {});
  EXPECT_NE(out.find("b (1 rank): killed by signal 9"), std::string::npos);
}

TEST(Summary, OnlyTheLastAttemptCounts) {
  Record first = gemm_record(), second = gemm_record();
  first.status = Status::error;
  second.attempt = 2;
  EXPECT_EQ(summary_of({measured_run({first, second})}).verdict, "held: 1 · failed: 0 · skipped: 0");
}

TEST(Summary, SurvivesMalformedRecords) {
  Record record;
  record.params = nullptr;
  record.family = "gemm";
  RunData run = measured_run({record});
  run.run = Json::array({1, 2});
  EXPECT_FALSE(render_markdown(summary_of({run})).empty());
  run.run = {{"environment", "text"}, {"plan", 3}, {"findings", {1, "x"}}, {"labels", Json::array()}};
  EXPECT_FALSE(render_json(summary_of({run})).empty());
}

}  // namespace
}  // namespace assay::report
