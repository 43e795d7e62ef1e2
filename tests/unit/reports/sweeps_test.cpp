// Sweeps: the knee, the largest value that fits, and what the report says of them.
#include "reports/sweep/sweeps.h"

#include "harness/record/flags.h"
#include "reports/render/render.h"
#include "tests/support/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace assay::report {
namespace {

using testing::HasSubstr;
using testing::Not;

Record point(int micro_batch, std::optional<double> rate, int ranks = 1) {
  const Json params = {{"model", "gpt2-tiny"}, {"precision", "f32"}, {"micro_batch", micro_batch}, {"seq", 32}};
  Record record = test::record_of(fmt::format("transformer/model=gpt2-tiny/micro_batch={}/seq=32", micro_batch), {});
  if (rate) record.metrics = {test::metric("throughput", *rate, "tokens/s", Interval{*rate * 0.99, *rate * 1.01})};
  record.metrics.push_back(test::metric("planned_memory", 1e6 * micro_batch, "B"));
  record.params = params;
  record.world_ranks = ranks;
  record.labels["sweep"] = "micro_batch";
  return record;
}

Record unfit(int micro_batch) {
  Record record = point(micro_batch, {});
  record.metrics.clear();
  record.status = Status::skipped;
  record.flags.emplace_back(flag::does_not_fit);
  record.reason = "does not fit: 9 bytes are planned (9 B), 8 bytes are usable (8 B)";
  return record;
}

struct Found {
  explicit Found(std::vector<Record> records) {
    std::vector<RunData> all;
    all.push_back(test::run_of(std::move(records)));
    runs = std::make_unique<RunSet>(std::move(all));
    sweeps = find_sweeps(*runs);
  }
  std::unique_ptr<RunSet> runs;
  std::vector<Sweep> sweeps;

  std::string text(std::size_t i = 0) const { return std::get<Text>(sweep_sections(sweeps).front().blocks.at(i)).text; }
};

TEST(Sweeps, TheKneeIsTheSmallestWithin3PercentOfTheBest) {
  const Found found({point(8, 1000), point(2, 969), point(4, 970), unfit(32), point(16, 990), point(1, 500)});
  ASSERT_EQ(found.sweeps.size(), 1u);
  const Sweep& sweep = found.sweeps[0];
  EXPECT_EQ(sweep.points.size(), 5u);
  EXPECT_EQ(sweep.points[*sweep.knee].value, 4);
  EXPECT_EQ(sweep.points[*sweep.best].value, 8);
  EXPECT_EQ(sweep.points.back().value, 16);
  EXPECT_EQ(sweep.beyond()->value, 32);
  EXPECT_EQ(
      found.text(),
      "train gpt2-tiny f32 32 over micro_batch: the knee is 4 (970 tokens/s, 97.0 % of the 1,000 tokens/s of 8); the "
      "largest that fits is 16; 32 does not fit: 9 bytes are planned (9 B), 8 bytes are usable (8 B)");
  const Json json = sweeps_json(found.sweeps);
  EXPECT_EQ(json[0]["knee"], 4);
  EXPECT_EQ(json[0]["largest"], 16);
  EXPECT_EQ(json[0]["does_not_fit"]["value"], 32);
  EXPECT_EQ(json[0]["points"][1]["throughput"]["value"], 969);
  EXPECT_EQ(json[0]["points"][1]["planned_bytes"], 2e6);
}

TEST(Sweeps, WithoutAnEndNoneIsTheLargestThatFits) {
  const Found found({point(1, 500), point(2, 600)});
  EXPECT_THAT(found.text(), HasSubstr("the knee is 2 (600 tokens/s, the most); the largest that was tried is 2"));
  EXPECT_TRUE(sweeps_json(found.sweeps)[0]["does_not_fit"].is_null());
}

TEST(Sweeps, FailedCasesHaveNoThroughput) {
  Record failed = point(4, 9000);
  failed.status = Status::failed;
  const Found found({point(1, 500), point(2, 600), failed});
  EXPECT_EQ(found.sweeps[0].points[*found.sweeps[0].best].value, 2);
  const Found none({failed});
  EXPECT_THAT(none.text(), HasSubstr("no value has a valid throughput"));
  const std::vector<Section> sections = sweep_sections(none.sweeps);
  for (const Block& block : sections.front().blocks) EXPECT_FALSE(std::holds_alternative<Figure>(block));
}

TEST(Sweeps, OnlyWhatRanFits) {
  Record broken = point(4, {});
  broken.status = Status::error;
  Record lacking = point(8, {});
  lacking.status = Status::skipped;
  lacking.reason = "this CPU has no fp8 arithmetic";
  const Found found({point(1, 500), point(2, 600), broken, lacking, unfit(16)});
  EXPECT_EQ(sweeps_json(found.sweeps)[0]["largest"], 2);
  EXPECT_EQ(found.sweeps[0].beyond()->value, 16);
}

TEST(Sweeps, AreOneForEachCombinationOfTheOthers) {
  Record other = point(1, 100);
  Json params = other.params.get();
  params["seq"] = 64;
  other.params = params;
  const Found found({point(1, 500), point(2, 600), point(1, 900, 2), other});
  ASSERT_EQ(found.sweeps.size(), 3u);
  EXPECT_TRUE(std::any_of(found.sweeps.begin(), found.sweeps.end(),
                          [](const Sweep& sweep) { return sweep.title.ends_with("2 ranks"); }));
}

TEST(Sweeps, APictureShowsWhatTheTableHas) {
  const Found found({point(1, 500), point(2, 985), point(4, 1000), unfit(8)});
  const std::vector<Section> sections = sweep_sections(found.sweeps);
  const auto& table = std::get<Table>(sections[0].blocks[1]);
  EXPECT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[1].back().text, "knee");
  EXPECT_EQ(table.rows[2].back().text, "best, largest that fits");
  const auto& figure = std::get<Figure>(sections[0].blocks[2]);
  EXPECT_EQ(figure.curves[0].points.size(), 3u);
  EXPECT_EQ(figure.curves[1].points[0].y, 970);
  EXPECT_THAT(figure.alt, HasSubstr("the knee is 2"));
  Document document{"t", "h", "v", Tone::plain, sections};
  EXPECT_THAT(render_html(document), HasSubstr("sweep-picture-1"));
  EXPECT_THAT(render_json(document), Not(HasSubstr("\"sweeps\": [")));
}

TEST(Sweeps, OthersCasesMakeNone) {
  Record plain = point(1, 500);
  plain.labels.clear();
  const Found found({plain});
  EXPECT_TRUE(found.sweeps.empty());
  EXPECT_TRUE(sweep_sections(found.sweeps).empty());
}

}  // namespace
}  // namespace assay::report
