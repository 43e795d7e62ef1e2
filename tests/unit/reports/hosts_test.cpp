// Hosts side by side, the matrix between them, and how a run on each host is split.
#include "reports/hosts/hosts.h"
#include "harness/core/units.h"
#include "harness/runs/groups.h"
#include "harness/runs/host_runs.h"
#include "reports/compare/pairing.h"
#include "reports/hosts/side_by_side.h"
#include "reports/page/page.h"
#include "reports/render/render.h"
#include "tests/support/blocks.h"
#include "tests/support/runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Record gemm_on(const std::string& host, double flops, int m = 2048) {
  Record record =
      test::record_of(fmt::format("gemm/dtype=f32/m={0}/n={0}/k={0}/transpose=nn/cache=cold/duration=burst", m),
                      {test::metric("throughput", flops, "FLOP/s", Interval{flops * 0.99, flops * 1.01})});
  record.params = {{"dtype", "f32"}, {"m", m}, {"n", m}, {"k", m}, {"transpose", "nn"}, {"cache", "cold"}};
  record.protocol = {{"hash", "p"}};
  record.ranks = {{0, host, "cpu", 1.0}};
  record.samples.count = 40;
  record.started = "2026-01-01T00:00:00Z";
  return record;
}

// As --each-host writes it: every host with its own environment.
RunData each_host_run(std::vector<Record> records, const std::vector<std::string>& hosts) {
  RunData run;
  run.dir = "runs/fleet";
  run.run = {{"schema", 1},
             {"started", "2026-01-01T00:00:00Z"},
             {"plan", {{"name", "quick"}}},
             {"each_host", true},
             {"hosts", Json::array()},
             {"environment", {{"cpu", {{"name", "login node"}}}, {"gpus", Json::array()}}}};
  for (const std::string& host : hosts)
    run.run["hosts"].push_back({{"name", host},
                                {"environment",
                                 {{"cpu", {{"name", "AMD Zen 4"}, {"usable_cores", 8}}},
                                  {"hostnames", {"kernel-name"}},
                                  {"gpus", Json::array()}}},
                                {"findings", Json::array()}});
  for (Record& record : records) {
    run.records.push_back(std::move(record));
    run.lines.push_back(static_cast<int>(run.records.size()));
  }
  return run;
}

std::vector<std::string> names(int hosts) {
  std::vector<std::string> all;
  for (int i = 1; i <= hosts; ++i) all.push_back(fmt::format("n{}", i));
  return all;
}

// Hosts within 1 % of 400 GFLOP/s; host `odd` (from 1) has `flops`.
RunData fleet(int hosts, int odd = 0, double flops = 0) {
  std::vector<Record> records;
  for (int i = 1; i <= hosts; ++i)
    records.push_back(gemm_on(fmt::format("n{}", i), i == odd ? flops : 4e11 + 1e9 * (i % 5)));
  return each_host_run(std::move(records), names(hosts));
}

Document report_of(RunData run) {
  std::vector<RunData> runs;
  runs.push_back(std::move(run));
  return whole_report(RunSet(std::move(runs)), {});
}

const Section* section_of(const Document& document, const std::string& id) {
  const auto found = std::find_if(document.sections.begin(), document.sections.end(),
                                  [&](const Section& section) { return section.id == id; });
  return found == document.sections.end() ? nullptr : &*found;
}

TEST(HostRuns, EachHostBecomesARunWithItsOwnEnvironmentAndLines) {
  RunData run = each_host_run({gemm_on("n1", 1), gemm_on("n2", 2), gemm_on("n1", 3, 512)}, {"n1", "n2", "n3"});
  run.problems = {"records.jsonl line 9: not JSON"};
  const std::vector<RunData> parts = split_hosts(std::move(run));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].records.size(), 2u);
  EXPECT_THAT(parts[0].lines, ElementsAre(1, 3));
  EXPECT_EQ(parts[1].records.size(), 1u);
  EXPECT_TRUE(parts[2].records.empty());
  EXPECT_EQ(parts[1].run["environment"]["cpu"]["name"], "AMD Zen 4");
  EXPECT_EQ(parts[1].run["environment"]["hostnames"], Json::array({"n2"}));
  EXPECT_FALSE(parts[0].run.contains("hosts"));
  EXPECT_EQ(parts[0].problems.size(), 1u);
  EXPECT_TRUE(parts[1].problems.empty());
}

TEST(HostRuns, OtherAndMalformedRunsAreNotSplit) {
  RunData run = each_host_run({gemm_on("n1", 1), gemm_on("n2", 2)}, {"n1", "n2"});
  run.run.erase("each_host");
  EXPECT_EQ(split_hosts(run).size(), 1u);
  run.run["each_host"] = "yes";
  EXPECT_EQ(split_hosts(run).size(), 1u);
  run.run["each_host"] = true;
  run.run["hosts"] = 7;  // malformed: use the hosts that the records name
  EXPECT_EQ(split_hosts(run).size(), 2u);
}

TEST(HostRuns, HostsAreMachinesOfOneDirectory) {
  std::vector<RunData> runs;
  runs.push_back(fleet(4));
  const RunSet set(std::move(runs));
  EXPECT_EQ(set.directories(), 1u);
  EXPECT_EQ(set.runs().size(), 4u);
  EXPECT_EQ(by_machine(set).size(), 4u);
  for (const MachineRuns& machine : by_machine(set)) {
    ASSERT_EQ(machine.cases.size(), 1u);
    EXPECT_EQ(machine.cases.front().entries.size(), 1u);
    EXPECT_EQ(machine.machine.cpu, "AMD Zen 4");
  }
  EXPECT_TRUE(hosts_of_one_run(set));
}

TEST(HostRuns, ComparisonPairsHostWithHost) {
  const auto set = [](double second) {
    std::vector<RunData> runs;
    runs.push_back(each_host_run({gemm_on("n1", 4e11), gemm_on("n2", second)}, {"n1", "n2"}));
    return runs;
  };
  const RunSet base(set(4e11)), head(set(2e11));
  const comparison::Pairing pairing = comparison::pair_sides(base, head);
  ASSERT_EQ(pairing.pairs.size(), 2u);
  for (const comparison::Pair& pair : pairing.pairs)
    EXPECT_EQ(pair.base->record->ranks.front().host, pair.head->record->ranks.front().host);
}

TEST(Hosts, BelowEightHostsOnlyTheTableAndTheSpreadAreShown) {
  const Document document = report_of(fleet(4, 3, 2e11));
  const Section* section = section_of(document, "hosts");
  ASSERT_TRUE(section);
  const Table* table = test::find_block<Table>(*section, "hosts");
  ASSERT_TRUE(table && table->rows.size() == 1);
  const std::vector<Cell>& row = table->rows.front();
  EXPECT_EQ(row[1].data, 4);
  EXPECT_EQ(row[3].data["host"], "n3");
  EXPECT_NEAR(row[5].data.get<double>(), (4.04e11 - 2e11) / 4.015e11, 1e-6);
  EXPECT_EQ(row[6].text, "–");
  const Table* beside = test::find_block<Table>(*section, "hosts_side_by_side");
  ASSERT_TRUE(beside && beside->columns.size() == 5);
  EXPECT_EQ(beside->columns[3].title, "n3");
  EXPECT_THAT(render_terminal(document, {}), HasSubstr("too few to identify outliers"));
  EXPECT_THAT(document.headline, HasSubstr("4 hosts"));
}

TEST(Hosts, FromEightHostsOnOutliersAreNamed) {
  const Document document = report_of(fleet(16, 7, 3e11));
  const Section* section = section_of(document, "hosts");
  ASSERT_TRUE(section);
  const auto* words = std::get_if<Text>(&section->blocks.front());
  ASSERT_TRUE(words);
  EXPECT_THAT(words->text, HasSubstr("n7 stands out in 1 case"));
  EXPECT_THAT(words->text, HasSubstr("25 % below the median of 16 hosts"));
  EXPECT_EQ(words->tone, Tone::warn);
  EXPECT_EQ(test::find_block<Table>(*section, "hosts")->rows.front()[6].data, 1);
  EXPECT_FALSE(test::find_block<Table>(*section, "hosts_side_by_side"));
  const Table* all = test::find_block<Table>(*section_of(document, "host-figures"), "host_figures");
  ASSERT_EQ(all->rows.size(), 16u);
  EXPECT_EQ(all->rows.front()[1].text, "n7");  // the farthest from the median first
  EXPECT_EQ(all->rows.front()[2].tone, Tone::warn);
}

TEST(Hosts, SmallDifferencesAndBrokenHostsAreNotOutliers) {
  const Document near = report_of(fleet(16, 7, 3.96e11));
  EXPECT_EQ(test::find_block<Table>(*section_of(near, "hosts"), "hosts")->rows.front()[6].data, 0);
  EXPECT_THAT(render_terminal(near, {}), HasSubstr("No host stands out."));

  RunData run = fleet(9);
  run.records[4].status = Status::error;
  run.records[4].reason = "host n5: lost";
  run.records[4].metrics.clear();
  const Document broken = report_of(std::move(run));
  EXPECT_EQ(test::find_block<Table>(*section_of(broken, "hosts"), "hosts")->rows.front()[1].data, 8);
  EXPECT_THAT(render_markdown(broken), HasSubstr("host n5: lost"));
}

TEST(Hosts, SeparateRunsOfSingleHostsAreComparedToo) {
  std::vector<RunData> runs;
  for (const std::string host : {"a", "b"}) {
    RunData run = each_host_run({gemm_on(host, 4e11)}, {});
    run.run.erase("each_host");
    run.run["environment"]["hostnames"] = {host};
    runs.push_back(std::move(run));
  }
  const Document document = whole_report(RunSet(std::move(runs)), {});
  ASSERT_TRUE(section_of(document, "hosts"));
}

TEST(Hosts, OneHostIsNotCompared) { EXPECT_FALSE(section_of(report_of(fleet(1)), "hosts")); }

TEST(Hosts, TheReportOfFiveHundredHostsIsBoundedAndSorted) {
  std::vector<Record> records;
  for (int i = 500; i >= 1; --i)
    for (int m = 1; m <= 20; ++m)
      records.push_back(gemm_on(fmt::format("n{}", i), i % 100 == 0 ? 1e11 : 4e11 + 1e8 * (i % 7), 128 * m));
  const Document document = report_of(each_host_run(std::move(records), names(500)));
  const Section* section = section_of(document, "hosts");
  EXPECT_THAT(std::get<Text>(section->blocks[0]).text, HasSubstr("n100 stands out in 20 cases"));
  EXPECT_THAT(std::get<Text>(section->blocks[1]).text, HasSubstr("n200 stands out"));
  EXPECT_EQ(test::find_block<Table>(*section_of(document, "host-figures"), "host_figures")->rows.size(), 5000u);
  EXPECT_LT(render_html(document).size(), 1500000u);
  const std::string terminal = render_terminal(document, {});
  EXPECT_LT(std::count(terminal.begin(), terminal.end(), '\n'), 100);
}

TEST(Hosts, NamesAreInNaturalOrder) {
  EXPECT_TRUE(natural_less("n2", "n10"));
  EXPECT_FALSE(natural_less("n10", "n2"));
  EXPECT_TRUE(natural_less("a9", "b1"));
  EXPECT_TRUE(natural_less("n", "n1"));
  EXPECT_FALSE(natural_less("n1", "n1"));
  EXPECT_TRUE(natural_less("n01", "n1") != natural_less("n1", "n01"));
}

Record pairwise_record(int hosts) {
  Record record;
  record.key = "collective/op=pairwise/bytes=16777216/dtype=f32/inplace=false/batching=batched";
  record.family = "collective";
  record.params = {
      {"op", "pairwise"}, {"bytes", 16 << 20}, {"dtype", "f32"}, {"inplace", false}, {"batching", "batched"}};
  record.world_ranks = record.world_nodes = hosts;
  record.metrics.push_back({"slowest_pair_bandwidth", 1e9, "B/s", {}, Better::higher, {}, {}});
  Matrix matrix{"bandwidth", "B/s", Better::higher, {}, {}};
  for (int a = 0; a < hosts; ++a) {
    record.ranks.push_back({a, fmt::format("n{}", a + 1), "cpu", 1.0});
    matrix.ranks.push_back(a);
    for (int b = 0; b < hosts; ++b)
      matrix.values.push_back(a == b                         ? std::numeric_limits<double>::quiet_NaN()
                              : a + b == 3 && a < 3 && b < 3 ? 1e9
                                                             : 1e10 + 1e7 * (a + b));
  }
  record.matrix = matrix;
  record.flags = {"slow link n2 - n3: 10 times the median link's time, both ways"};
  return record;
}

TEST(Pairs, TheSlowLinkIsNamedAndShaded) {
  RunData run;
  run.dir = "runs/pairs";
  run.run = {{"schema", 1}};
  run.records = {pairwise_record(4)};
  const Document document = report_of(run);
  const Section* section = section_of(document, "pairs");
  ASSERT_TRUE(section);
  EXPECT_THAT(std::get<Text>(section->blocks[0]).text,
              HasSubstr("bandwidth between 4 hosts. Slowest: n2 to n3, 1 GB/s"));
  EXPECT_THAT(std::get<Text>(section->blocks[1]).text, HasSubstr("slow link n2 - n3"));
  const Table* table = test::find_block<Table>(*section, "pairs");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows[1][3].heat, 6);
  EXPECT_EQ(table->rows[1][3].data, 1e9);
  EXPECT_EQ(table->rows[0][2].heat, 0);
  EXPECT_EQ(table->rows[2][3].text, "–");
  EXPECT_THAT(render_html(document), HasSubstr("<td class=h6"));
  EXPECT_THAT(render_markdown(document), HasSubstr("slow link n2 - n3"));
  EXPECT_THAT(render_terminal(document, {}), HasSubstr("slow link n2 - n3"));
}

TEST(Pairs, RailsAreAColumnEach) {
  Record record;
  record.key = "collective/op=rails/bytes=16777216/dtype=f32/inplace=false/batching=batched";
  record.family = "collective";
  record.params = {{"op", "rails"}, {"bytes", 16 << 20}, {"dtype", "f32"}, {"inplace", false}, {"batching", "batched"}};
  record.world_ranks = 5, record.world_nodes = 3;
  for (int rank = 0; rank < 5; ++rank) record.ranks.push_back({rank, fmt::format("n{}", rank / 2 + 1), "cpu", 1.0});
  const double none = std::numeric_limits<double>::quiet_NaN();
  // The second rail, which n3 has no port of, is slow from n1 to n2.
  record.rails = {
      {"bandwidth", "B/s", Better::higher, {0, 2, 4}, {none, 10e9, 10e9, 10e9, none, 10e9, 10e9, 10e9, none}},
      {"bandwidth", "B/s", Better::higher, {1, 3}, {none, 2e9, 10e9, none}}};
  record.matrix = record.rails.front();
  record.matrix->values[1] = 2e9;
  RunData run;
  run.dir = "runs/rails";
  run.run = {{"schema", 1}};
  run.records = {record};
  const Document document = report_of(run);
  const Table* table = test::find_block<Table>(*section_of(document, "pairs"), "rails");
  ASSERT_TRUE(table);
  ASSERT_EQ(table->columns.size(), 3u);
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_EQ(table->rows[0][1].data, 10e9);
  EXPECT_EQ(table->rows[0][2].data, 2e9) << "in the slower direction";
  EXPECT_EQ(table->rows[1][2].heat, 6);
  EXPECT_EQ(table->rows[2][2].text, "–");
}

TEST(Pairs, ALargeMatrixIsCutToItsSlowestMembers) {
  RunData run;
  run.dir = "runs/pairs";
  run.run = {{"schema", 1}};
  run.records = {pairwise_record(300)};
  const Document document = report_of(run);
  const Section* section = section_of(document, "pairs");
  EXPECT_FALSE(test::find_block<Table>(*section, "pairs"));
  ASSERT_EQ(test::find_block<Table>(*section, "slowest_pairs")->rows.size(), 10u);
  EXPECT_EQ(test::find_block<Table>(*section, "slowest_pairs")->rows[0][0].text, "n2");
  const Table* table = test::find_block<Table>(*section_of(document, "pair-matrices"), "pairs");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows.size(), 48u);
  EXPECT_THAT(table->title, HasSubstr("the 48 of 300 with the slowest links"));
  EXPECT_LT(render_html(document).size(), 1000000u);
}

}  // namespace
}  // namespace assay::report
