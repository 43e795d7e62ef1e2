// The sections of the summary: figures by rule, machines side by side, odd samples; and that neither the order of runs
// and records nor copies of runs matter.
#include "reports/summary/sections.h"
#include "harness/runs/figures.h"
#include "reports/page/page.h"
#include "reports/render/render.h"
#include "reports/summary/key_figures.h"
#include "reports/summary/verdict.h"
#include "tests/support/runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {
namespace {

using test::run_of;

Record case_of(const std::string& key, const char* metric, double value, const char* unit) {
  Record record = test::record_of(key, {test::metric(metric, value, unit, Interval{value * 0.99, value * 1.01})});
  record.samples.values = {1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0};
  record.samples.at = {0, 1, 2, 3, 4, 5, 6};
  record.samples.count = 7;
  return record;
}

std::vector<std::string> titles_of(std::vector<Record> records) {
  std::vector<RunData> runs;
  runs.push_back(run_of(std::move(records)));
  const RunSet set(std::move(runs));
  std::vector<std::string> titles;
  for (const KeyFigure& figure : key_figures(by_machine(set).front())) titles.push_back(figure.title);
  return titles;
}

TEST(KeyFigures, AreChosenByRule) {
  const auto titles = titles_of({case_of("gemm/dtype=f32/m=8/n=8/k=8", "throughput", 1e9, "FLOP/s"),
                                 case_of("gemm/dtype=f32/m=9/n=9/k=9", "throughput", 3e9, "FLOP/s"),
                                 case_of("gemm/dtype=bf16/m=9/n=9/k=9", "throughput", 2e9, "FLOP/s"),
                                 case_of("memory/op=triad/bytes=4096", "bandwidth", 9e9, "B/s"),
                                 case_of("memory/op=triad/bytes=1048576", "bandwidth", 5e9, "B/s"),
                                 case_of("collective/op=all_reduce/bytes=8", "busbw", 9e9, "B/s"),
                                 case_of("collective/op=all_reduce/bytes=65536", "busbw", 1e9, "B/s"),
                                 case_of("dataloader/kind=image/stage=read", "throughput", 900, "img/s"),
                                 case_of("dataloader/kind=image/stage=all", "throughput", 300, "img/s"),
                                 case_of("mystery/x=1", "throughput", 1, "1")});
  EXPECT_EQ(titles,
            (std::vector<std::string>{"gemm f32 9 x 9 x 9", "gemm bf16 9 x 9 x 9", "memory triad 1 MiB",
                                      "collective all_reduce 64 KiB, 1 rank", "dataloader image all", "mystery/x=1"}));
}

TEST(KeyFigures, ShowASustainedProductBesideTheBurst) {
  std::vector<Record> records;
  const auto gemm = [&](const std::string& dtype, const char* duration, double value) {
    records.push_back(
        case_of("gemm/dtype=" + dtype + "/m=8/n=8/k=8/duration=" + duration, "throughput", value, "FLOP/s"));
  };
  for (const char* dtype : {"f64", "int8", "fp8_e4m3", "tf32", "fp16", "bf16", "f32"}) gemm(dtype, "burst", 9e14);
  gemm("bf16", "sustained", 7e14);
  gemm("bf16", "sustained", 6e14);
  gemm("fp8_e4m3", "sustained", 9.5e14);  // whatever is faster, burst and sustained keep their places
  for (const char* op : {"triad", "copy", "latency"})
    records.push_back(case_of(std::string("memory/op=") + op + "/bytes=4096",
                              op == std::string("latency") ? op : "bandwidth", 9e9, "B/s"));
  for (const char* model : {"a", "b"})
    records.push_back(case_of(std::string("llama/model=") + model, "throughput", 9, "tokens/s"));
  auto titles = titles_of(records);
  ASSERT_EQ(titles.size(), 10u);
  titles.resize(6);
  EXPECT_EQ(titles, (std::vector<std::string>{"gemm f32 8 x 8 x 8", "gemm bf16 8 x 8 x 8",
                                              "gemm bf16 8 x 8 x 8, sustained", "gemm fp8_e4m3 8 x 8 x 8",
                                              "gemm fp8_e4m3 8 x 8 x 8, sustained", "memory triad 4 KiB"}));
}

TEST(KeyFigures, AreAtMostTenAndOnlyMeasurements) {
  std::vector<Record> records;
  for (const char* dtype : {"f32", "bf16", "fp16", "tf32", "int8", "f64"})
    records.push_back(case_of(std::string("gemm/dtype=") + dtype + "/m=8/n=8/k=8", "throughput", 1e9, "FLOP/s"));
  for (const char* op : {"triad", "copy"})
    records.push_back(case_of(std::string("memory/op=") + op + "/bytes=4096", "bandwidth", 9e9, "B/s"));
  for (const char* model : {"a", "b", "c", "d"})
    records.push_back(case_of(std::string("llama/model=") + model, "throughput", 9, "tokens/s"));
  EXPECT_EQ(titles_of(records).size(), 10u);
  for (Record& record : records) record.flags = {"injected:slow-rank"};
  EXPECT_TRUE(titles_of(records).empty());
}

TEST(CaseTitle, SkipsAbsentParts) {
  Record image;
  image.family = "resnet";
  image.params = {{"model", "resnet50"}, {"precision", "f32"}, {"micro_batch", 8}, {"seq", "none"}};
  EXPECT_EQ(case_title(image), "train resnet50 f32 8");
  Record bare;
  bare.family = "gemm";
  bare.key = "gemm/dtype=bf16/m=16/n=8/k=4";
  EXPECT_EQ(case_title(bare), "gemm bf16 16 x 8 x 4");
  Record empty;
  EXPECT_EQ(case_title(empty), "case without a key");
  Record call =
      case_of("collective/op=all_reduce/bytes=8/batching=graph/nvls=off/buffers=symmetric", "busbw", 1, "B/s");
  EXPECT_EQ(case_title(call), "collective all_reduce 8 B, graph, symmetric buffers, NVLS off, 1 rank");
  EXPECT_EQ(
      case_title(case_of("collective/op=all_reduce/bytes=8/batching=batched/p2p=off/among=rail", "busbw", 1, "B/s")),
      "collective all_reduce 8 B, P2P off, each rail apart, 1 rank");
  EXPECT_EQ(with_titles("broke: gemm/dtype=f32/m=8/n=8/k=8: see /tmp/a=b/c and gemm/dtype=*/m=8"),
            "broke: gemm f32 8 x 8 x 8: see /tmp/a=b/c and gemm/dtype=*/m=8");
}

TEST(Environment, MachinesAreSideBySideAndDifferencesShow) {
  const auto machine = [](const char* cpu, const char* kernel, const char* fix) {
    return Json{
        {"schema", 1},
        {"environment", {{"cpu", {{"name", cpu}}}, {"os", {{"kernel", kernel}}}}},
        {"findings", Json::array({{{"severity", "warning"}, {"seen", "swap"}, {"effect", "slow"}, {fix, "swapoff"}}})}};
  };
  std::vector<RunData> runs;
  runs.push_back(run_of({}, "a", machine("Zen 4", "6.1", "mend")));  // as older runs name it
  runs.push_back(run_of({}, "b", machine("Zen 5", "6.1", "fix")));
  const auto sections = environment_sections(RunSet(std::move(runs)));
  ASSERT_EQ(sections.size(), 1u);
  const auto& facts = std::get<Table>(sections[0].blocks[0]);
  ASSERT_EQ(facts.columns.size(), 3u);
  for (const auto& row : facts.rows)
    EXPECT_EQ(row[1].tone, row[0].text == "kernel" ? Tone::plain : Tone::warn) << row[0].text;
  const auto& findings = std::get<Table>(sections[0].blocks[1]);
  ASSERT_EQ(findings.rows.size(), 1u);
  EXPECT_EQ(findings.rows[0][3].text, "swapoff");
}

TEST(Suites, SeveralRunsOfAMachineShareARow) {
  std::vector<RunData> runs;
  runs.push_back(run_of({case_of("launch/op=x", "latency", 3e-6, "s")}, "old", {{"started", "2026-01-01T00:00:00Z"}}));
  runs.push_back(run_of({case_of("launch/op=x", "latency", 2e-6, "s")}, "new", {{"started", "2026-01-02T00:00:00Z"}}));
  const auto sections = suite_sections(RunSet(std::move(runs)));
  ASSERT_EQ(sections.size(), 1u);
  const auto& table = std::get<Table>(sections[0].blocks[0]);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0][1].text, "2.00 us");
  EXPECT_EQ(table.columns[4].id, "runs");
  EXPECT_EQ(table.rows[0][4].text, "2");
  EXPECT_EQ(table.rows[0][5].data, (Json{2e-6, 3e-6}));
}

std::string everything(std::vector<RunData> runs) {
  const Document document = whole_report(RunSet(std::move(runs)), {});
  return render_json(document) + render_markdown(document) + render_terminal(document, {});
}

// Zero variance, one sample, none, nulls, a figure of zero, an empty interval.
TEST(Samples, OddOnesDoNotCrashOrPrintNan) {
  std::vector<Record> records;
  for (const std::vector<double>& values : {std::vector<double>{},
                                            {1.0},
                                            {2.0, 2.0, 2.0},
                                            {0.0, 0.0},
                                            {std::numeric_limits<double>::quiet_NaN(), 1.0},
                                            {1e-300, 1e300},
                                            {-1.0, 1.0}}) {
    Record record = case_of("odd/n=" + std::to_string(records.size()), "latency", 0, "s");
    record.samples.values = values;
    record.samples.at.assign(values.size(), 0.5);
    record.samples.count = static_cast<std::int64_t>(values.size());
    record.metrics[0].ci95 = Interval{0, 0};
    record.metrics[0].reference = 0;
    record.telemetry["clock"] = {"Hz", {0, 1, 2}, {0.0, std::nullopt, 0.0}};
    records.push_back(std::move(record));
  }
  std::vector<RunData> runs;
  for (Record& record : records) runs.push_back(run_of({record}, "r" + record.key.substr(6)));
  const std::string out = everything(std::move(runs));
  for (const char* word : {"nan", "NaN", "inf ", "Infinity"}) EXPECT_EQ(out.find(word), std::string::npos) << word;
}

TEST(Samples, UnreadableSeriesAreReported) {
  Record record = case_of("odd/n=1", "latency", 1, "s");
  record.samples.series = "series/none.json";
  std::vector<RunData> runs;
  runs.push_back(run_of({record}, "nowhere"));
  EXPECT_NE(everything(std::move(runs)).find("none.json"), std::string::npos);
}

std::vector<RunData> three_runs() {
  std::vector<RunData> runs;
  for (int i = 0; i < 3; ++i) {
    std::vector<Record> records;
    for (int r = 0; r < 5; ++r) {
      Record record =
          case_of("gemm/dtype=f32/m=" + std::to_string(1 << r) + "/n=8/k=8", "throughput", 1e9 + i + r, "FLOP/s");
      record.started = "2026-01-01T00:00:0" + std::to_string(i) + "Z";
      records.push_back(std::move(record));
    }
    runs.push_back(run_of(std::move(records), "run-" + std::to_string(i),
                          {{"environment", {{"hostnames", {i == 2 ? "b" : "a"}}}}}));
  }
  return runs;
}

TEST(RunSetProperty, OrderOfDirectoriesAndCopiesDoNotMatter) {
  const std::string expected = everything(three_runs());
  std::vector<int> order{0, 1, 2, 0, 2};
  std::sort(order.begin(), order.end());
  do {
    const std::vector<RunData> all = three_runs();
    std::vector<RunData> runs;
    for (const int i : order) runs.push_back(all[static_cast<std::size_t>(i)]);
    ASSERT_EQ(everything(std::move(runs)), expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

// Rows may change their order, but rows and key figures are the same.
TEST(RunSetProperty, OrderOfRecordsChangesNoFigure) {
  const auto rows = [](bool reversed) {
    std::vector<RunData> runs = three_runs();
    if (reversed)
      for (RunData& run : runs) std::reverse(run.records.begin(), run.records.end());
    const RunSet set(std::move(runs));
    std::vector<std::string> texts;
    for (const auto& sections : {key_figure_sections(set, {}), suite_sections(set)}) {
      for (const Section& section : sections)
        for (const Block& block : section.blocks)
          if (const auto* table = std::get_if<Table>(&block))
            for (const auto& row : table->rows) {
              std::string text;
              for (const Cell& cell : row) text += cell.text + cell.data.dump() + cell.link + "|";
              texts.push_back(std::move(text));
            }
    }
    std::sort(texts.begin(), texts.end());
    return texts;
  };
  EXPECT_EQ(rows(false), rows(true));
}

TEST(RunSetProperty, EveryLinkLeadsToARow) {
  const Document document = whole_report(RunSet(three_runs()), {});
  std::vector<std::string> anchors, links;
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks)
      if (const auto* table = std::get_if<Table>(&block)) {
        anchors.insert(anchors.end(), table->anchors.begin(), table->anchors.end());
        for (const auto& row : table->rows)
          for (const Cell& cell : row)
            if (!cell.link.empty()) links.push_back(cell.link);
      }
  EXPECT_FALSE(links.empty());
  for (const std::string& link : links) EXPECT_EQ(std::count(anchors.begin(), anchors.end(), link), 1) << link;
}

TEST(LeftOut, UnreadableLinesAreCountedAndListed) {
  RunData run = run_of({case_of("a/b=1", "x", 1, "s")});
  run.problems = {"records.jsonl line 7: not JSON"};
  std::vector<RunData> runs;
  runs.push_back(std::move(run));
  const RunSet set(std::move(runs));
  EXPECT_EQ(verdict_of(set).line, "held: 1 · failed: 0 · skipped: 0 · 1 line not read");
  const auto sections = unreadable_sections(set);
  ASSERT_EQ(sections.size(), 1u);
  EXPECT_EQ(std::get<List>(sections[0].blocks[1]).items, (std::vector<std::string>{"records.jsonl line 7: not JSON"}));
}

TEST(Hostile, StringsStayInert) {
  const std::string hostile = "\x1b[2J<script>alert(1)</script>|`x`\u202e\xff\n# t";
  Record record = case_of("gemm/dtype=" + hostile + "/m=1/n=1/k=1", hostile.c_str(), 1, hostile.c_str());
  record.labels[hostile] = hostile;
  record.flags = {hostile};
  record.status = Status::failed;
  record.reason = hostile;
  record.checks = {{hostile, false, 1, 0, {hostile}}};
  record.spans = {{hostile, 1}};
  record.device = hostile;
  record.protocol = {{"<script>\x1b", "\u202e"}};  // from files, JSON is always UTF-8
  record.telemetry[hostile] = {hostile, {0, 1}, {1, 2}};
  std::vector<RunData> runs;
  runs.push_back(
      run_of({record}, "evil", {{"labels", {{"k", hostile}}}, {"environment", {{"cpu", {{"name", hostile}}}}}}));
  const Document document = whole_report(RunSet(std::move(runs)), {});
  for (const std::string& out : {render_markdown(document), render_terminal(document, {})}) {
    EXPECT_EQ(out.find('\x1b'), std::string::npos);
    EXPECT_EQ(out.find("\u202e"), std::string::npos);
  }
  EXPECT_EQ(render_json(document).find('\x1b'), std::string::npos);
  EXPECT_EQ(render_markdown(document).find("<script>"), std::string::npos);
}

}  // namespace
}  // namespace assay::report
