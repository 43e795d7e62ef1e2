// The HTML page and the axes of its pictures.
#include "reports/model/estimate.h"
#include "reports/render/axis.h"
#include "reports/render/escape.h"
#include "reports/render/render.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace assay::report {
namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::vector<std::string> labels(const Scale& scale) {
  std::vector<std::string> texts;
  for (const Tick& tick : scale.ticks) texts.push_back(tick.label);
  return texts;
}

using Labels = std::vector<std::string>;

Document page_of(Block block) {
  Document document;
  document.title = "Assay report";
  document.sections = {{"first", "First", {std::move(block)}}};
  return document;
}

const std::string evil = "</script><script>x()</script>\"'>&\xE2\x80\xA8\x1b[31m";

TEST(HtmlEscape, LeavesNoMarkup) {
  EXPECT_EQ(html_escape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(html_escape("\x1b\xff"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Html, HostileStringsStayInertEverywhere) {
  Figure figure{evil, evil, evil, {evil, evil, false, {evil, evil}}, {evil, evil}, {}};
  figure.curves = {{evil, Mark::bars, {{0, 1, Interval{0, 2}, evil}, {1, 2, {}, evil}}}};
  Table table{evil, evil, {{evil, evil}}, {{{evil, evil, Tone::bad, evil}}}, {evil}};
  Document document;
  document.title = document.headline = document.verdict = evil;
  document.sections = {{evil, evil, {Text{evil}, table, Verbatim{evil, evil}, List{evil, {evil}}, figure}}};
  const std::string page = render_html(document);
  EXPECT_FALSE(holds(page, "<script>x()"));
  EXPECT_FALSE(holds(page, "\xE2\x80\xA8"));
  EXPECT_FALSE(holds(page, "\x1b"));
  // Only the library and the page's own script.
  EXPECT_EQ(count(page, "<script"), 2u);
  EXPECT_EQ(count(page, "</script"), 2u);
}

TEST(Html, LoadsNothingExternal) {
  const std::string page = render_html(page_of(Text{"x"}));
  EXPECT_TRUE(holds(page, "Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-"));
  EXPECT_FALSE(holds(page, " src="));
  EXPECT_FALSE(holds(page, "@import"));
  EXPECT_FALSE(holds(page, "url("));
}

TEST(Html, IncludesTheLibraryOnlyForPictures) {
  EXPECT_LT(render_html(page_of(Text{"x"})).size(), 30000u);
  Figure figure{"f", "Figure", "What it shows.", {"x", "1"}, {"y", "s"}, {{"c", Mark::points, {{1, 2}}}}};
  const std::string page = render_html(page_of(figure));
  EXPECT_TRUE(holds(page, "Chart.js v"));
  EXPECT_TRUE(holds(page, "<canvas role=img aria-label=\"What it shows.\""));
}

TEST(Html, LinksPointOnlyIntoTheDocument) {
  Table table{"cases", "", {{"a", "a"}, {"b", "b"}}, {}, {"r 1"}};
  table.rows = {{{"up", nullptr, Tone::plain, "first"}, {"row", nullptr, Tone::plain, "r 1"}},
                {{"gone", nullptr, Tone::plain, "nowhere"}, {"plain"}}};
  const std::string page = render_html(page_of(table));
  EXPECT_TRUE(holds(page, "<a href=#first>up</a>"));
  EXPECT_TRUE(holds(page, "<tr id=r-1>"));
  EXPECT_TRUE(holds(page, "<a href=#r-1>row</a>"));
  EXPECT_TRUE(holds(page, ">gone<td>plain"));
}

// A section, a table and a row with the same name, two names that look alike, and a reserved one.
TEST(Html, IdsAreUnique) {
  Table table{"first", "", {{"a", "a"}}, {{{"1"}}, {{"2"}}, {{"3"}}, {{"4"}}}, {"first", "r/1", "r 1", "page-main"}};
  const std::string page = render_html(page_of(table));
  for (const char* id : {"first>", "r-1>", "r-1-2>", "page-main ", "x-page-main>"})
    EXPECT_EQ(count(page, " id=" + std::string(id)), 1u) << id;
}

TEST(Html, TonesHaveASymbolAndAWord) {
  Table table{
      "t", "", {{"a", "a"}}, {{{"x", nullptr, Tone::bad}}, {{"y", nullptr, Tone::warn}}, {{"z", nullptr, Tone::good}}}};
  const std::string page = render_html(page_of(table));
  EXPECT_TRUE(holds(page, "class=bad>✗</i> x"));
  EXPECT_TRUE(holds(page, "class=warn title=attention>!</i> y"));
  EXPECT_TRUE(holds(page, "class=good>✓</i> z"));
}

TEST(Html, CellsAreSortedByTheirValue) {
  Table table{"t", "", {{"a", "a"}}, {}};
  Cell own{"1 min"};
  own.sort = 60;
  table.rows = {{own}, {{"2 GB/s", {{"value", 2e9}, {"unit", "B/s"}}}}, {{"3", 3}}, {{"text", "key"}}, {{"?", NAN}}};
  const std::string page = render_html(page_of(table));
  for (const char* cell : {" data-v=60>1 min", " data-v=2e9>2 GB/s", "<th>3", "<th>text", "<th>?"})
    EXPECT_TRUE(holds(page, cell)) << cell;
}

TEST(Html, EqualDocumentsGiveEqualBytes) {
  Figure figure{"f", "F", "", {"x", "B", true}, {"y", "s"}, {{"c", Mark::line, {{1024, 1e-3}, {4096, 2e-3}}}}};
  EXPECT_EQ(render_html(page_of(figure)), render_html(page_of(figure)));
}

// 300 cases with eight columns and ten pictures of 5,000 samples: larger than any page of one run.
TEST(Html, StaysBelowAMegabyte) {
  Table table{"t", "", std::vector<Column>(8, {"a", "column"}), {}};
  for (int row = 0; row < 300; ++row) table.rows.emplace_back(8, Cell{"gemm bf16 2048 x 2048", {{"value", 1e9 + row}}});
  Document document = page_of(table);
  for (int i = 0; i < 10; ++i) {
    Figure figure{"f" + std::to_string(i),  "Samples",       "Samples",
                  {"since the start", "s"}, {"sample", "s"}, {{"c", Mark::points, {}}}};
    for (int k = 0; k < 5000; ++k) figure.curves[0].points.push_back({k * 0.0123, 1.2345e-3 + 1e-6 * k});
    document.sections[0].blocks.push_back(figure);
  }
  EXPECT_LT(render_html(document).size(), 800000u);
}

// Several tables for each of a hundred machines.
TEST(Html, ManyTablesStayBelowFiveMegabytes) {
  Table table{"", "A machine", {{"a", "column"}}, std::vector<std::vector<Cell>>(60, {{std::string(400, 'x')}})};
  Document document;
  document.sections = {{"suites", "Suites", std::vector<Block>(300, table)}};
  const std::string page = render_html(document);
  EXPECT_LT(page.size(), 5000000u);
  EXPECT_EQ(count(page, "<table"), 300u);
}

TEST(Html, OddNumbersAreNotDrawn) {
  Figure figure{"f", "F", "", {"x", "B", true}, {"y", "s", true}, {}};
  figure.curves = {{"c", Mark::points, {{0, 1}, {1, NAN}, {2, INFINITY}, {4, -1}, {8, 1e-3, Interval{-1, 2}}}}};
  const std::string page = render_html(page_of(figure));
  EXPECT_TRUE(holds(page, "<tr><td>0 B<td data-v=1>1 s<td>"));
  EXPECT_TRUE(holds(page, "<tr><td data-v=1>1 B<td>?"));
  EXPECT_TRUE(holds(page, "<tr><td data-v=2>2 B<td>?"));
  EXPECT_TRUE(holds(page, "<td data-v=0.001>"));
  EXPECT_FALSE(holds(page, "nan"));
  EXPECT_FALSE(holds(page, "data-v=inf"));
}

TEST(Scale, LinearStepsAreRoundAndInOneUnit) {
  // 0 to 4.2e10 in steps of 10 GB/s: 42 / 6 = 7, the next of 1, 2, 5, 10.
  const Scale scale = make_scale({"bandwidth", "B/s"}, {1e9, 4e10}, false);
  EXPECT_EQ(scale.title, "bandwidth (GB/s)");
  EXPECT_EQ(labels(scale), (Labels{"0", "10", "20", "30", "40"}));
  EXPECT_EQ(scale.low, 0);
  EXPECT_DOUBLE_EQ(scale.high, 4.2e10);
  EXPECT_EQ(labels(make_scale({"share", "1"}, {0.81, 1.0}, false)), (Labels{"0.85", "0.90", "0.95", "1.00"}));
  EXPECT_EQ(labels(make_scale({"rate", "img/s"}, {60000}, true)), (Labels{"0", "20,000", "40,000", "60,000"}));
}

TEST(Scale, LogarithmicTicksCarryTheirUnit) {
  const Scale bytes = make_scale({"message", "B", true}, {8, 268435456}, false);
  EXPECT_TRUE(bytes.logarithmic);
  EXPECT_EQ(bytes.title, "message");
  EXPECT_EQ(labels(bytes), (Labels{"32 B", "1 KiB", "32 KiB", "1 MiB", "32 MiB"}));
  EXPECT_EQ(labels(make_scale({"time", "s", true}, {5e-6, 3e-4}, false)),
            (Labels{"5 us", "10 us", "20 us", "50 us", "100 us", "200 us"}));
  EXPECT_EQ(labels(make_scale({"time", "s", true}, {1e-9, 1}, false)),
            (Labels{"10 ns", "1 us", "100 us", "10 ms", "1 s"}));
}

TEST(Scale, WorldSizesArePowersOfTwo) {
  EXPECT_EQ(labels(make_scale({"ranks", "1", true}, {1, 2, 4, 16}, false)), (Labels{"1", "2", "4", "8", "16"}));
  EXPECT_EQ(labels(make_scale({"ranks", "1", true}, {1, 2, 6, 12}, false)), (Labels{"1", "2", "5", "10"}));
}

TEST(Scale, EveryRangeHasTicksWithinIt) {
  for (const bool logarithmic : {false, true})
    for (const char* unit : {"s", "B", "FLOP/s", "1", "USD"})
      for (const double low : {1e-12, 3.3e-4, 1.0, 7.7, 123456.0, 9.9e15})
        for (const double ratio : {1.0, 1.0001, 1.5, 4.9, 5.0, 5.1, 77.0, 1e4, 1e9, 1e20}) {
          const Scale scale = make_scale({"x", unit, logarithmic}, {low, low * ratio}, false);
          EXPECT_LE(scale.low, low);
          EXPECT_GE(scale.high, low * ratio);
          EXPECT_GE(scale.ticks.size(), 2u) << unit << low << ' ' << ratio << logarithmic;
          EXPECT_LE(scale.ticks.size(), 12u) << unit << low << ' ' << ratio << logarithmic;
          for (const Tick& tick : scale.ticks) EXPECT_TRUE(tick.at >= scale.low && tick.at <= scale.high);
        }
}

TEST(Scale, SurvivesEmptyAndInvalidRanges) {
  EXPECT_FALSE(make_scale({"x", "s"}, {}, false).ticks.empty());
  EXPECT_FALSE(make_scale({"x", "s", true}, {0, -1, NAN}, false).ticks.empty());
  EXPECT_FALSE(make_scale({"x", "s"}, {0}, true).ticks.empty());
  EXPECT_FALSE(make_scale({"x", "s"}, {-5, 5}, false).ticks.empty());
  EXPECT_EQ(labels(make_scale({"m", "", false, {"a", "b"}}, {}, true)), (Labels{"a", "b"}));
}

TEST(Scale, NoIntervalSqueezesTheFigures) {
  using Values = std::vector<double>;
  const auto ends = [](const std::vector<Estimate>& all, bool from_zero) {
    const auto [low, high] = std::ranges::minmax(shown_values(all, from_zero));
    return Values{low, high};
  };
  // The figures span 0.4; 36 is further away from them than that, 1.7 is not.
  const std::vector<Estimate> changes{
      {0.9, Interval{0.88, 0.92}}, {1.3, Interval{1.2, 1.7}}, {1, Interval{-2, 36}}, {1.1}};
  EXPECT_EQ(ends(changes, false), (Values{0.88, 1.7}));
  // Bars span what lies between them and zero.
  EXPECT_EQ(ends({{10, Interval{9, 20}}, {5, Interval{-400, 400}}}, true), (Values{5, 20}));
  // Equal figures span nothing: then what most intervals need is shown.
  EXPECT_EQ(ends({{1, Interval{0.9, 1.1}}, {1, Interval{0.8, 1.2}}, {1, Interval{0.1, 40}}}, false),
            (Values{0.8, 1.2}));
  EXPECT_EQ(ends({{1, Interval{0.1, 40}}}, false), (Values{0.1, 40})) << "one point has its whole interval";
  EXPECT_TRUE(shown_values({}, true).empty());
}

TEST(Html, ATableHasTheWholeIntervalThatItsPictureCuts) {
  for (const bool logarithmic : {false, true}) {
    Figure figure{"f", "F", "", {"x", ""}, {"speed", "1", logarithmic}, {}};
    figure.curves = {
        {"c", Mark::points, {{0, 0.9, Interval{0.8, 1}}, {1, 2, Interval{1.9, 2.1}}, {2, 1, Interval{-3, 36}}}}};
    const std::string page = render_html(page_of(figure));
    const std::size_t cell = page.find("<td data-v=-3 data-w=36>");
    ASSERT_NE(cell, page.npos) << logarithmic;
    EXPECT_TRUE(holds(page.substr(cell, page.find('\n', cell) - cell), "– 36")) << logarithmic;
    // The members of an axis are in alphabetical order, so that the end of the scale stands before the title.
    const std::size_t high = page.rfind("&quot;high&quot;:", page.find("&quot;title&quot;:&quot;speed"));
    EXPECT_LT(std::stod(page.substr(high + std::string("&quot;high&quot;:").size())), 3) << logarithmic;
  }
}

TEST(Thin, KeepsEndsAndExtremes) {
  std::vector<Point> points(10000);
  for (std::size_t i = 0; i < points.size(); ++i)
    points[i] = {static_cast<double>(i), std::sin(static_cast<double>(i) * 0.1)};
  points[1234].y = 50;
  points[8765].y = -50;
  points[4321].y = NAN;
  const std::vector<Point> kept = thin(points, 100);
  EXPECT_LE(kept.size(), 100u);
  EXPECT_GE(kept.size(), 90u);
  EXPECT_EQ(kept.front().x, 0);
  EXPECT_EQ(kept.back().x, 9999);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(), [](const Point& a, const Point& b) { return a.x < b.x; }));
  for (const double extreme : {50.0, -50.0})
    EXPECT_TRUE(std::any_of(kept.begin(), kept.end(), [&](const Point& p) { return p.y == extreme; }));
  EXPECT_EQ(thin(points, 10000).size(), 10000u);
  EXPECT_LE(thin(points, 4).size(), 4u);
}

// 100 + 50 fit; the two long ones share the rest of 1,000: (1,000 - 150) / 2.
TEST(Thin, CurvesShareThePage) {
  EXPECT_EQ(points_per_curve({100, 5000, 50, 9000}, 1000), 425u);
  EXPECT_EQ(points_per_curve({100, 200}, 1000), 200u);
  EXPECT_EQ(points_per_curve(std::vector<std::size_t>(500, 100), 1000), 16u);
  EXPECT_EQ(points_per_curve({}, 1000), 16u);
}

}  // namespace
}  // namespace assay::report
