// The sections: their contents, that order and copies do not matter, and that no figure is NaN or infinite.
#include "reports/render/escape.h"
#include "reports/render/render.h"
#include "reports/scaling/scaling.h"
#include "tests/unit/reports/scaling/records.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::report::scaling {
namespace {

Document document_of(std::vector<RunData> data) {
  const RunSet runs(std::move(data));
  Document document;
  document.sections = scaling_sections(runs);
  return document;
}

// Two runs of a strong series over four world sizes, and an all-reduce over two.
std::vector<RunData> two_runs(double factor = 1) {
  std::vector<RunData> data;
  for (const int i : {0, 1}) {
    std::vector<Record> records;
    for (const int n : {1, 2, 4, 8}) {
      Record record = step_record("strong", n, factor * (0.2 + 0.8 / n) * (1 + 0.001 * i), 1.005);
      for (int rank = 0; rank < n; ++rank)
        record.ranks.push_back({rank, "h" + std::to_string(rank / 4), "", factor * (1 + 0.01 * rank)});
      records.push_back(record);
    }
    for (const int n : {2, 4})
      for (const double bytes : {8.0, 65536.0, 16777216.0})
        records.push_back(collective_record("all_reduce", n, bytes, factor * (n * 1e-6 + bytes / 1e9), 1.01));
    data.push_back(run_of(records, "r" + std::to_string(i), {{"started", "2026-01-0" + std::to_string(i + 1)}}));
  }
  return data;
}

Json table_of(const Json& document, const std::string& id) {
  for (const Json& section : document.at("sections"))
    for (const Json& table : section.at("tables"))
      if (table.at("id") == id) return table.at("rows");
  return nullptr;
}

TEST(ScalingSections, NothingThatScalesGivesNoSection) {
  Record gemm;
  gemm.family = "gemm";
  gemm.key = "gemm/m=1";
  EXPECT_TRUE(document_of(one_run({gemm})).sections.empty());
  EXPECT_TRUE(document_of({}).sections.empty());
}

TEST(ScalingSections, TablesHaveStableNamesAndBaseUnits) {
  const Json json = Json::parse(render_json(document_of(two_runs())));
  const Json strong = table_of(json, "strong");
  ASSERT_EQ(strong.size(), 4u);
  EXPECT_EQ(strong[1]["ranks"], 2);
  EXPECT_EQ(strong[1]["runs"], 2);
  EXPECT_EQ(strong[1]["time"]["unit"], "s");
  EXPECT_NEAR(strong[1]["efficiency"]["value"].get<double>(), 1 / (2 * 0.6), 1e-9);
  for (const char* id : {"prediction", "prediction_models", "collectives", "collective_fits", "amdahl",
                         "collective_forms", "residuals", "ranks"})
    EXPECT_FALSE(table_of(json, id).is_null()) << id;
  // 8 ranks: rank 7 takes 1.07 of rank 0's time, on the second host.
  const Json slowest = table_of(json, "ranks")[0];
  EXPECT_EQ(slowest["slowest_rank"], 7);
  EXPECT_EQ(slowest["host"], "h1");
  EXPECT_NEAR(slowest["spread"]["value"].get<double>(), 0.07, 1e-9);
}

TEST(ScalingSections, OrderAndCopiesDoNotMatter) {
  const std::string expected = render_json(document_of(two_runs())) + render_markdown(document_of(two_runs()));
  std::vector<RunData> turned = two_runs();
  std::reverse(turned.begin(), turned.end());
  turned.push_back(two_runs()[0]);
  EXPECT_EQ(render_json(document_of(turned)) + render_markdown(document_of(turned)), expected);
}

// Places in files may change with the order of lines; figures must not.
TEST(ScalingSections, OrderOfRecordsChangesNoFigure) {
  std::vector<RunData> turned = two_runs();
  for (RunData& run : turned) std::reverse(run.records.begin(), run.records.end());
  const Json one = Json::parse(render_json(document_of(two_runs())));
  const Json other = Json::parse(render_json(document_of(turned)));
  for (const char* id : {"strong", "prediction", "collectives", "amdahl", "collective_forms", "residuals", "ranks"})
    EXPECT_EQ(table_of(one, id), table_of(other, id)) << id;
}

TEST(ScalingSections, AFactorOnAllTimesChangesNoEfficiency) {
  const Json one = Json::parse(render_json(document_of(two_runs())));
  const Json slow = Json::parse(render_json(document_of(two_runs(1024))));
  for (const auto& [table, member] : {std::pair("strong", "efficiency"), std::pair("prediction", "efficiency"),
                                      std::pair("amdahl", "serial"), std::pair("collectives", "half_size")}) {
    const Json a = table_of(one, table), b = table_of(slow, table);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i][member]["value"].get<double>() / b[i][member]["value"].get<double>(), 1, 1e-6) << table;
  }
}

void expect_finite(const Document& document) {
  const auto finite = [](double value) { EXPECT_TRUE(std::isfinite(value)); };
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks) {
      if (const auto* table = std::get_if<Table>(&block))
        for (const auto& row : table->rows) {
          EXPECT_EQ(row.size(), table->columns.size()) << table->id;
          for (const Cell& cell : row) {
            if (cell.sort) finite(*cell.sort);
            for (const char* word : {"nan", "inf", "?"})
              EXPECT_EQ(cell.text.find(word), std::string::npos) << table->id << ": " << cell.text;
          }
        }
      if (const auto* figure = std::get_if<Figure>(&block)) {
        EXPECT_LE(figure->curves.size(), 5u);
        EXPECT_FALSE(figure->alt.empty());
        for (const Curve& curve : figure->curves)
          for (const Point& point : curve.points) {
            finite(point.x);
            finite(point.y);
            EXPECT_GT(point.y, 0);
            if (point.range) finite(point.range->low), finite(point.range->high);
          }
      }
    }
}

TEST(ScalingSections, NoFigureIsNaNOrInfinite) {
  expect_finite(document_of(two_runs()));
  // Odd values: huge, tiny, equal, missing, of the wrong type.
  const double huge = 1e300, tiny = 1e-300;
  for (const double first : {huge, tiny, 1.0}) {
    std::vector<Record> records;
    for (const int n : {1, 2, 3, 5, 1000000}) {
      Record record = step_record(n % 2 ? "weak" : "strong", n, n == 3 ? first : 1.0);
      record.metrics[0].ci95 = n == 2 ? Interval{-1, 2} : Interval{tiny, huge};
      record.ranks = {{0, "", "", 0.0}, {1, "", "", tiny}, {2, "", "", huge}};
      record.spans = {{"exposed_communication", huge}};
      records.push_back(record);
      Record strong = step_record("strong", n + 1, n == 3 ? first : 1.0);
      records.push_back(strong);
      for (const double bytes : {1.0, 2.0, 3.0, 9e18})
        records.push_back(collective_record("all_to_all", n, bytes, bytes == 2 ? first : 1.0));
    }
    records.push_back(collective_record("gossip", 2, -5, 1));
    records[0].params["micro_batch"] = "recipe";
    records[1].protocol = nullptr;
    expect_finite(document_of(one_run(records)));
  }
  Record two = step_record("weak", 2, 1);
  two.metrics[0].value = std::numeric_limits<double>::quiet_NaN();
  two.samples.values = {std::nan(""), 1.0};
  expect_finite(document_of(one_run({step_record("weak", 1, 1), two})));
}

TEST(ScalingSections, OneWorldSizeSaysWhatToRun) {
  const std::string out = render_markdown(document_of(one_run({step_record("weak", 1, 1)})));
  EXPECT_NE(out.find("Only one comparable world size (1 rank)"), std::string::npos) << out;
  EXPECT_NE(out.find("gpt2"), std::string::npos);
  EXPECT_NE(out.find("ranks 1,2"), std::string::npos);
}

TEST(ScalingSections, TooFewMessageSizesSayHowManyAreMissing) {
  const Document document = document_of(one_run({collective_record("all_reduce", 2, 8, 1e-6)}));
  const Json json = Json::parse(render_json(document));
  EXPECT_TRUE(table_of(json, "collectives").is_null());
  EXPECT_EQ(table_of(json, "collective_fits").at(0)["remark"], "1 size: 2 more needed for a line and its residual");
}

TEST(ScalingSections, TerminalFitsAHundredColumns) {
  const std::string out = render_terminal(document_of(two_runs()), {});
  std::size_t from = 0;
  while (from < out.size()) {
    const std::size_t end = out.find('\n', from);
    EXPECT_LE(display_width(std::string_view(out).substr(from, end - from)), 100) << out.substr(from, end - from);
    from = end + 1;
  }
  EXPECT_NE(out.find("Slowest rank: 7 on h1"), std::string::npos) << out;
}

}  // namespace
}  // namespace assay::report::scaling
