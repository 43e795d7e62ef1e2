// Bars: how they are drawn, and where the key figures' marks lie on their scales.
#include "reports/render/render.h"
#include "reports/summary/key_bars.h"
#include "tests/support/runs.h"

#include <gmock/gmock.h>

namespace assay::report {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string hostile_text = "</th><script>x()</script>\"'>&\x1b[31m";

std::string bars_page(Bars bars) {
  Document document;
  document.sections = {{"figures", "Figures", {std::move(bars)}}};
  return render_html(document);
}

TEST(Bars, PartsFollowEachOtherOverTheirScale) {
  const std::string page = bars_page({"b", "", "", {"a", "b", "c"}, {{"row", "1 s", {0.25, 0.5, 0.25}}}});
  EXPECT_THAT(page, HasSubstr("<rect class=scale x=0 y=0 width=1000 height=20 />"));
  EXPECT_THAT(page, HasSubstr("<rect class=p0 x=0 y=4 width=250 height=12 />"
                              "<rect class=p1 x=250 y=4 width=500 height=12 />"
                              "<rect class=p2 x=750 y=4 width=250 height=12 />"));
  EXPECT_THAT(page, HasSubstr("<rect class=p2 width=1 height=1 /></svg>c</li>")) << "the key";
}

TEST(Bars, NothingIsDrawnOutsideOfTheScale) {
  BarRow row{"row", "1 s", {1.5}};
  row.range = Interval{-0.5, 2};
  const std::string page = bars_page({"b", "", "", {}, {row}});
  EXPECT_THAT(page, HasSubstr("<rect class=p0 x=0 y=4 width=1000 height=12 />"));
  EXPECT_THAT(page, HasSubstr("<path class=range d=\"M12 6L0 10L12 14M988 6L1000 10L988 14M0 10H1000\" />"));
  EXPECT_THAT(page, HasSubstr("Arrow: the interval goes beyond the scale."));
}

TEST(Bars, MarksLieWhereTheirFiguresAre) {
  BarRow row{"row", "1 s", {0.5}};
  row.range = Interval{0.45, 0.55};
  row.peak = 0.9;
  row.reference = Interval{0.4, 0.6};
  row.published = {{0.7, 0.7}, {0.75, 0.8}};
  const std::string page = bars_page({"b", "", "", {}, {row}});
  EXPECT_THAT(page, HasSubstr("<rect class=reference x=400 y=0 width=200 height=20 /><rect class=p0"));
  EXPECT_THAT(page, HasSubstr("<path class=range d=\"M450 6L450 10L450 14M550 6L550 10L550 14M450 10H550\" />"));
  EXPECT_THAT(page, Not(HasSubstr("Arrow: ")));
  EXPECT_THAT(page, HasSubstr("<path class=published d=\"M700 0V5M700 15V20M700 0V5M700 15V20\" />"));
  EXPECT_THAT(page,
              HasSubstr("<path class=published d=\"M750 0V5M750 15V20M750 1H800M750 19H800M800 0V5M800 15V20\" />"));
  EXPECT_THAT(page, HasSubstr("<path class=peak d=\"M900 0V20\" />"));
}

TEST(Bars, HostileTextsStayInert) {
  BarRow row{hostile_text, hostile_text, {0.5}};
  row.link = hostile_text;
  const std::string page = bars_page({hostile_text, hostile_text, hostile_text, {hostile_text, "b"}, {row}});
  EXPECT_THAT(page, Not(HasSubstr("<script>x()")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, HasSubstr("&lt;/th&gt;&lt;script&gt;"));
}

TEST(Bars, WithoutRowsThereIsNoFigure) {
  EXPECT_THAT(bars_page({"b", "title", "note", {}, {}}), Not(HasSubstr("<figure")));
}

class KeyBars : public testing::Test {
 protected:
  Bars bars(const Beside& beside) {
    return bars_of({{&entry_, &record_.metrics.front(), "gemm"}}, {beside}, "bars", "");
  }
  Record record_ = test::record_of("gemm/m=1", {test::metric("throughput", 80, "FLOP/s", Interval{76, 84})});
  RunData run_ = test::run_of({});
  Entry entry_{&run_, &record_};
};

TEST_F(KeyBars, ThePeakEndsTheScale) {
  record_.metrics.front().of_peak = 0.8;
  const Bars drawn = bars({});
  const BarRow& row = drawn.rows.front();
  EXPECT_DOUBLE_EQ(row.parts.front() / *row.peak, 0.8);
  EXPECT_DOUBLE_EQ(*row.peak, 1 / 1.02);
  EXPECT_DOUBLE_EQ(row.range->high / row.parts.front(), 84.0 / 80);
  EXPECT_EQ(row.text, "80 FLOP/s ± 5.0 %, 80 % of peak");
  EXPECT_FALSE(row.reference);
  EXPECT_THAT(drawn.note, Not(HasSubstr("shade")));
  EXPECT_THAT(drawn.note, Not(HasSubstr("published")));
}

TEST_F(KeyBars, WithoutAScaleThereIsNoBarButTheSamplesOverTime) {
  record_.samples.values = {0.5, 0.25, 1};
  record_.samples.count = 3;
  const Bars drawn = bars({});
  const BarRow& row = drawn.rows.front();
  EXPECT_THAT(row.parts, testing::IsEmpty());
  EXPECT_FALSE(row.range || row.peak);
  EXPECT_THAT(row.strip, testing::ElementsAre(0.5, 1, 0.25)) << "rates, of the largest";
  EXPECT_EQ(row.text, "80 FLOP/s ± 5.0 %");
  EXPECT_THAT(drawn.note, HasSubstr("the samples over time"));
  EXPECT_THAT(bars_page(drawn), HasSubstr("<path class=strip d=\"M0 10L500 1L1000 14.5\" />"));
}

TEST_F(KeyBars, TheUsualShareIsALineOnTheScaleOfThePeak) {
  record_.device = "cpu";
  record_.key = "gemm/dtype=f32/m=2048/n=2048/k=2048";
  record_.choices["isa"] = "avx2";
  record_.metrics.front().of_peak = 0.8;
  const Bars drawn = bars({});
  const BarRow& row = drawn.rows.front();
  ASSERT_TRUE(row.usual);
  EXPECT_DOUBLE_EQ(row.usual->low / *row.peak, 0.72);
  EXPECT_DOUBLE_EQ(row.usual->high / *row.peak, 0.86);
  EXPECT_THAT(drawn.note, HasSubstr("the usual share"));
  EXPECT_THAT(bars_page(drawn), HasSubstr("<path class=usual d=\"M705.88 19H843.14\" />"));
}

TEST_F(KeyBars, ReferencesAndPublishedFiguresAreOnTheScale) {
  PublishedFigure published;
  published.value = {100, 400};
  Beside beside;
  beside.values = {60, 90, 200};
  beside.published = {&published};
  const Bars drawn = bars(beside);
  const BarRow& row = drawn.rows.front();
  const double end = 1.02 * 400;
  EXPECT_DOUBLE_EQ(row.parts.front(), 80 / end);
  EXPECT_DOUBLE_EQ(row.reference->low, 60 / end);
  EXPECT_DOUBLE_EQ(row.reference->high, 200 / end);
  ASSERT_EQ(row.published.size(), 1u);
  EXPECT_DOUBLE_EQ(row.published.front().high, 400 / end);
  EXPECT_THAT(drawn.note, HasSubstr("shade: from the lowest to the highest reference run"));
  EXPECT_THAT(drawn.note, HasSubstr("published by others"));
}

}  // namespace
}  // namespace assay::report
