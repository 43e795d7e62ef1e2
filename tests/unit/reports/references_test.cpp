// Published figures: their files, and the records that they stand beside.
#include "reports/references/references.h"

#include "harness/core/configs.h"
#include "reports/answers/answers.h"
#include "reports/page/page.h"
#include "tests/support/blocks.h"
#include "tests/support/refusal.h"
#include "tests/support/runs.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>

#include <fstream>

namespace assay::report {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

Json published_member() {
  return {{"key", "gemm/dtype=f32/*"}, {"metric", "throughput"},
          {"unit", "FLOP/s"},          {"value", {"1 GFLOP/s", "1.2 GFLOP/s"}},
          {"by", "Someone"},           {"source", "https://example.org/paper"}};
}

class Published : public testing::Test {
 protected:
  std::vector<PublishedFigure> load(const Json& figure, const Json& match = {"CPU *"}) {
    std::ofstream(folder_.path() / "own.json") << Json{{"schema", 1}, {"match", match}, {"figures", {figure}}};
    return load_published(folder_.path());
  }
  std::string refusal(const Json& figure) {
    return test::refusal([&] { load(figure); });
  }
  test::TemporaryFolder folder_;
};

struct MeasuredCase {
  explicit MeasuredCase(Record one, const std::string& cpu = "CPU X")
      : run(test::run_of({}, "r", {{"environment", {{"cpu", {{"name", cpu}}}}}})), record(std::move(one)) {
    record.device = "cpu";
  }
  bool is(const PublishedFigure& figure) const { return is_of(figure, {&run, &record}, record.metrics.front()); }
  RunData run;
  Record record;
};

Record published_gemm() {
  return test::record_of("gemm/dtype=f32/m=64", {test::metric("throughput", 0.9e9, "FLOP/s")});
}

TEST_F(Published, IsReadWithItsUnitRangeAndSource) {
  const auto figures = load(published_member());
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures.front().value.low, 1e9);
  EXPECT_EQ(figures.front().value.high, 1.2e9);
  EXPECT_EQ(published_text(figures.front()), "Someone: 1.0 – 1.2 GFLOP/s");
  Json single = published_member();
  single.update({{"value", 5e8}, {"note", "two sockets"}});
  EXPECT_EQ(published_text(load(single).front()), "Someone: 500 MFLOP/s, two sockets");
}

TEST_F(Published, MistakesAreNamedWithTheirPlace) {
  const auto without = [](const char* name) {
    Json figure = published_member();
    figure.erase(name);
    return figure;
  };
  const auto with = [](const Json& members) {
    Json figure = published_member();
    figure.update(members);
    return figure;
  };
  EXPECT_THAT(refusal(without("source")), AllOf(HasSubstr("own.json: /figures/0"), HasSubstr("source")));
  EXPECT_THAT(refusal(without("by")), HasSubstr("by"));
  EXPECT_THAT(refusal(with({{"valu", 1}})), HasSubstr("value"));
  EXPECT_THAT(refusal(with({{"unit", "B/s"}})), HasSubstr("does not fit"));
  EXPECT_THAT(refusal(with({{"metric", "throughputs"}})),
              AllOf(HasSubstr("/figures/0/metric"), HasSubstr("did you mean \"throughput\"")));
  EXPECT_THAT(refusal(with({{"value", {"2 GFLOP/s", "1 GFLOP/s"}}})), HasSubstr("lower end"));
  EXPECT_THAT(refusal(with({{"value", {1}}})), HasSubstr("the lowest and the highest"));
  EXPECT_THAT(refusal(with({{"value", "1 GB/s"}})), HasSubstr("FLOP/s"));
}

TEST_F(Published, StandsBesideTheSameCaseOnTheSameHardware) {
  Json json = published_member();
  json.update({{"protocol", {{"data", "normal"}}}, {"ranks", 1}});
  const PublishedFigure figure = load(json).front();
  Record record = published_gemm();
  record.protocol = {{"data", "normal"}};
  EXPECT_TRUE(MeasuredCase(record).is(figure));
  EXPECT_FALSE(MeasuredCase(record, "GPU X").is(figure)) << "other hardware";
  Record other = record;
  other.protocol = {{"data", "zeros"}};
  EXPECT_FALSE(MeasuredCase(other).is(figure)) << "another protocol";
  other = record;
  other.key = "gemm/dtype=bf16/m=64";
  EXPECT_FALSE(MeasuredCase(other).is(figure)) << "another case";
  other = record;
  other.world_ranks = 2;
  EXPECT_FALSE(MeasuredCase(other).is(figure)) << "another world";
  other = record;
  other.metrics.front().name = "bandwidth";
  EXPECT_FALSE(MeasuredCase(other).is(figure)) << "another metric";
}

TEST_F(Published, AGpuIsKnownByItsRanks) {
  Json json = published_member();
  json["device"] = "cuda";
  const PublishedFigure figure = load(json, {"NVIDIA H100*"}).front();
  MeasuredCase measured(published_gemm());
  measured.record.device = "cuda";
  measured.record.ranks.push_back({0, "a", "NVIDIA H100 80GB HBM3", 1.0});
  EXPECT_TRUE(measured.is(figure));
  measured.record.ranks.front().device = "NVIDIA A100-SXM4-80GB";
  EXPECT_FALSE(measured.is(figure));
}

TEST_F(Published, IsInTheReportAndDecidesNothing) {
  std::vector<RunData> data;
  data.push_back(test::run_of({published_gemm()}, "r", {{"environment", {{"cpu", {{"name", "CPU X"}}}}}}));
  const RunSet runs(std::move(data));
  const References references{nullptr, load(published_member())};
  const Answer answer = normal_answer(runs, references);
  EXPECT_EQ(answer.tone, Tone::plain);
  EXPECT_THAT(answer.evidence, Contains(AllOf(HasSubstr("900 MFLOP/s; published by Someone: 1.0 – 1.2 GFLOP/s"),
                                              HasSubstr("https://example.org/paper"))));
  const Document document = whole_report(runs, {.prices = {}, .references = references});
  const Cell& cell = test::cell(test::table_of(document.sections, "figures"), 0, "published");
  EXPECT_EQ(cell.text, "Someone: 1.0 – 1.2 GFLOP/s");
  EXPECT_EQ(cell.data, (Json{{{"low", 1e9},
                              {"high", 1.2e9},
                              {"unit", "FLOP/s"},
                              {"by", "Someone"},
                              {"source", "https://example.org/paper"},
                              {"note", ""}}}));
  const Document without = whole_report(runs, {});
  EXPECT_THROW(test::cell(test::table_of(without.sections, "figures"), 0, "published"), std::out_of_range);
}

TEST_F(Published, TheShippedFilesAreRight) { EXPECT_FALSE(load_published(configs_dir() / "published").empty()); }

}  // namespace
}  // namespace assay::report
