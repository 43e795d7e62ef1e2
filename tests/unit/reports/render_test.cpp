#include "reports/render/render.h"

#include "reports/render/escape.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace assay::report {
namespace {

Document small_document() {
  Document document;
  document.title = "Assay report";
  document.headline = "Zen 4, 2 cores";
  document.verdict = "held: 1 · failed: 0";
  document.tone = Tone::good;
  Table table{"cases", "", {{"case", "case"}, {"median", "median", Align::right}}, {}};
  table.rows.push_back({{"gemm f32", "gemm/dtype=f32"}, {"412 GFLOP/s", {{"value", 4.12e11}, {"unit", "FLOP/s"}}}});
  table.rows.push_back({{"memory", nullptr}, {"–", nullptr, Tone::faint}});
  document.sections.push_back({"cases", "", {table}});
  document.sections.push_back({"more", "Appendix", {Text{"only in files"}}, false});
  return document;
}

TEST(Terminal, AlignsColumnsAndLeavesAppendicesOut) {
  EXPECT_EQ(render_terminal(small_document(), {}),
            "Zen 4, 2 cores\n"
            "case           median\n"
            "gemm f32  412 GFLOP/s\n"
            "memory              –\n"
            "held: 1 · failed: 0\n");
}

TEST(Terminal, ColoursOnlyWhenAsked) {
  EXPECT_EQ(render_terminal(small_document(), {}).find('\x1b'), std::string::npos);
  EXPECT_NE(render_terminal(small_document(), {.colour = true}).find("\x1b[32mheld: 1"), std::string::npos);
}

TEST(Terminal, NoLineIsWiderThanTheTerminal) {
  Document document = small_document();
  std::get<Table>(document.sections[0].blocks[0]).rows[0][0].text = std::string(300, 'x');
  document.headline = std::string("word ") + std::string(60, 'a') + " " + std::string(60, 'b');
  const std::string out = render_terminal(document, {.colour = false, .width = 100});
  std::size_t from = 0;
  while (from < out.size()) {
    const std::size_t end = out.find('\n', from);
    EXPECT_LE(display_width(std::string_view(out).substr(from, end - from)), 100);
    from = end + 1;
  }
}

// 12 columns of figures, 9 wide each with a gap of 2, next to names of 60 letters: the names are cut down to 12, and
// the columns continue in a second part that repeats the names.
TEST(Terminal, WideTablesContinueBelowWithoutCuttingFigures) {
  Table table{"t", "", {{"case", "case"}}, {{{std::string(60, 'n')}}}};
  for (int i = 0; i < 12; ++i) {
    table.columns.push_back({"c", "column " + std::to_string(i), Align::right});
    table.rows[0].push_back({std::to_string(1000000 + i)});
  }
  Document document;
  document.sections = {{"s", "", {table}}};
  const std::string out = render_terminal(document, {});
  for (int i = 0; i < 12; ++i) EXPECT_NE(out.find(std::to_string(1000000 + i)), std::string::npos) << i;
  std::size_t names = 0;
  for (std::size_t at = out.find("nnnnnnnnnnn…"); at != std::string::npos; at = out.find("nnnnnnnnnnn…", at + 1))
    ++names;
  EXPECT_EQ(names, 2u);
  std::size_t from = 0;
  for (std::size_t end; (end = out.find('\n', from)) != std::string::npos; from = end + 1)
    EXPECT_LE(display_width(std::string_view(out).substr(from, end - from)), 100);
}

TEST(Markdown, DrawsTablesAndAppendices) {
  EXPECT_EQ(render_markdown(small_document()),
            "# Assay report\n\n**held: 1 · failed: 0**\n\nZen 4, 2 cores\n\n"
            "| case | median |\n| --- | ---: |\n| gemm f32 | 412 GFLOP/s |\n| memory | – |\n\n"
            "## Appendix\n\nonly in files\n");
}

TEST(RenderJson, KeepsBaseUnits) {
  const auto json = Json::parse(render_json(small_document()));
  const auto& rows = json.at("sections").at(0).at("tables").at(0).at("rows");
  EXPECT_EQ(rows.at(0).at("case"), "gemm/dtype=f32");
  EXPECT_EQ(rows.at(0).at("median").at("value"), 4.12e11);
  EXPECT_EQ(rows.at(1).at("median"), "–");
}

TEST(RenderJson, HasThePointsOfPictures) {
  Document document;
  Figure figure{"f", "F", "", {"x", "B"}, {"y", "s"}, {{"c", Mark::points, {{1024, 1e-3, Interval{9e-4, 2e-3}, "p"}}}}};
  document.sections = {{"s", "", {figure}}};
  const auto json = Json::parse(render_json(document)).at("sections").at(0).at("figures").at(0);
  EXPECT_EQ(json.at("x").at("unit"), "B");
  EXPECT_EQ(json.at("curves").at(0).at("points").at(0),
            (Json{{"x", 1024}, {"y", 1e-3}, {"range", {9e-4, 2e-3}}, {"label", "p"}}));
}

TEST(Escape, HostileStringsStayInert) {
  const std::string hostile = "a\x1b[31m\r\n|<script>`**x**`\x80\xC2\x9B\xE2\x80\xAE";
  const std::string plain = printable(hostile);
  for (const char c : plain) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  EXPECT_EQ(plain.find("\xC2\x9B"), std::string::npos);
  EXPECT_EQ(plain.find("\xE2\x80\xAE"), std::string::npos);
  const std::string markdown = markdown_escape(hostile);
  EXPECT_EQ(markdown.find('<'), std::string::npos);
  EXPECT_NE(markdown.find("\\|"), std::string::npos);
  EXPECT_NE(markdown.find("\\`"), std::string::npos);
}

TEST(Escape, MarkdownMentionsNobodyAndLinksNothing) {
  EXPECT_EQ(markdown_escape("@user #123 gh-7 a@b.c"), "@&#8203;user \\#&#8203;123 gh-&#8203;7 a@&#8203;b.c");
  EXPECT_EQ(markdown_escape("https://x.org WWW.x.org"), "https:&#8203;//x.org WWW&#8203;.x.org");
  EXPECT_EQ(markdown_escape("a @ b # c: d-1 w.w"), "a @ b \\# c: d-1 w.w");
}

TEST(Escape, VerbatimCannotCloseItsFence) {
  Document document;
  document.title = "t";
  document.sections.push_back({"v", "", {Verbatim{"v", "```\n<b>\n````\n"}}});
  const std::string out = render_markdown(document);
  EXPECT_EQ(out.find("`````\n"), out.find("`````"));
  EXPECT_NE(out.find("`````"), std::string::npos);
}

TEST(Escape, ShortenCountsColumns) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdef", 4), "abc…");
  EXPECT_EQ(display_width("é±–"), 3);
  EXPECT_EQ(display_width("漢"), 2);
}

}  // namespace
}  // namespace assay::report
