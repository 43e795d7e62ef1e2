// A Document as one self-contained HTML file: style, scripts and data are inline, and its Content-Security-Policy
// allows no other script and no loading.
#include "reports/render/assets.h"
#include "reports/render/axis.h"
#include "reports/render/escape.h"
#include "reports/render/html_parts.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace assay::report {

namespace {

// Over all pictures of a page, at about 100 bytes each.
constexpr std::size_t max_points = 3000;
// Larger pages show only the first rows of long tables: pages are mailed, and opened on phones.
constexpr std::size_t max_bytes = 1000000;
constexpr std::size_t hard_max_bytes = 5000000;  // of many machines

std::vector<std::size_t> curve_lengths(const Document& document) {
  std::vector<std::size_t> lengths;
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks)
      if (const auto* figure = std::get_if<Figure>(&block))
        for (const Curve& curve : figure->curves) lengths.push_back(curve.points.size());
  return lengths;
}

std::string_view band_class(Tone tone) { return name_of(tone, {"plain", "good", "warn", "bad", "plain"}); }

std::string head(const Document& document, bool charts) {
  // Without an icon here browsers would request one.
  const std::string policy = fmt::format(
      "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'{}; img-src data:; base-uri 'none'; "
      "form-action 'none'",
      page_style.sha256, page_script.sha256, charts ? fmt::format(" 'sha256-{}'", chart_library.sha256) : "");
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>{}</style>\n</head>\n",
      policy, html_escape(document.title), page_style.text);
}

void band(std::string& out, const Document& document) {
  out +=
      fmt::format("<header class=\"band {}\">\n<h1>{}</h1>\n", band_class(document.tone), html_escape(document.title));
  if (!document.verdict.empty())
    out += fmt::format("<p class=verdict>{}{}</p>\n", sign_html(document.tone), html_escape(document.verdict));
  if (!document.headline.empty()) out += fmt::format("<p>{}</p>\n", html_escape(document.headline));
  out += "</header>\n";
}

// Each question with its answer. Long answers show their first lines, so that the figures below are on the first
// screen; opened, they show the rest and what they rest on.
void answers_html(std::string& out, const std::vector<Answer>& answers) {
  if (answers.empty()) return;
  constexpr std::size_t short_text = 100;
  out += "<dl class=answers>\n";
  for (const Answer& answer : answers) {
    const std::string text = fmt::format("{}{}", sign_html(answer.tone), html_escape(answer.text));
    out += fmt::format("<div><dt>{}</dt><dd>", html_escape(answer.title));
    if (answer.evidence.empty() && answer.text.size() <= short_text) {
      out += text + "</dd></div>\n";
      continue;
    }
    out += fmt::format("<details><summary><span>{}</span></summary>", text);
    if (!answer.evidence.empty()) {
      out += "<ul>\n";
      for (const std::string& line : answer.evidence) out += "<li>" + html_escape(line) + "</li>\n";
      out += "</ul>";
    }
    out += "</details></dd></div>\n";
  }
  out += "</dl>\n";
}

void contents(std::string& out, const Document& document, const Ids& ids) {
  std::string items;
  for (const Section& section : document.sections)
    if (const std::string id = ids.target(section.id); !section.title.empty() && !id.empty())
      items += fmt::format("<li><a href=#{}>{}</a></li>\n", id, html_escape(section.title));
  if (!items.empty()) out += "<nav aria-label=Contents>\n<ul>\n" + items + "</ul>\n</nav>\n";
}

void verbatim_html(std::string& out, const std::string& text) {
  out += "<pre class=box tabindex=0>";
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    out += html_escape(std::string_view(text).substr(from, end - from)) + "\n";
    from = end + 1;
  }
  out += "</pre>\n";
}

void block_html(std::string& out, const Section& section, const Block& block, std::size_t points, std::size_t max_rows,
                Ids& ids) {
  if (const auto* text = std::get_if<Text>(&block))
    out += fmt::format("<p{}>{}{}</p>\n", text->tone == Tone::faint ? " class=faint" : "", sign_html(text->tone),
                       html_escape(text->text));
  if (const auto* table = std::get_if<Table>(&block))
    table_html(out, *table, section.title.empty() ? "table" : section.title, max_rows, ids);
  if (const auto* figure = std::get_if<Figure>(&block)) figure_html(out, *figure, points, ids);
  if (const auto* bars = std::get_if<Bars>(&block)) bars_html(out, *bars, ids);
  if (const auto* verbatim = std::get_if<Verbatim>(&block)) verbatim_html(out, verbatim->text);
  if (const auto* list = std::get_if<List>(&block); list && !list->items.empty()) {
    constexpr std::size_t open_items = 12;  // longer ones are folded away
    const bool folded = list->items.size() > open_items;
    if (folded) out += fmt::format("<details><summary>{} entries</summary>\n", list->items.size());
    out += "<ul>\n";
    for (const std::string& item : list->items) out += "<li>" + html_escape(item) + "</li>\n";
    out += folded ? "</ul>\n</details>\n" : "</ul>\n";
  }
}

std::string page(const Document& document, const RowLimits& limits) {
  const std::vector<std::size_t> lengths = curve_lengths(document);
  const std::size_t points = points_per_curve(lengths, max_points);
  Ids ids(document, limits);
  std::string out = head(document, !lengths.empty());
  out += "<body>\n<a class=skip href=#page-main>Skip to the figures</a>\n";
  band(out, document);
  contents(out, document, ids);
  out += "<main id=page-main tabindex=-1>\n";
  for (const bool leading : {true, false}) {
    for (const Section& section : document.sections) {
      if (section.leads != leading) continue;
      out += fmt::format("<section{}>\n", ids.attribute(section.id));
      if (!section.title.empty()) out += fmt::format("<h2>{}</h2>\n", html_escape(section.title));
      for (const Block& block : section.blocks) block_html(out, section, block, points, limits.of(section), ids);
      out += "</section>\n";
    }
    if (leading) answers_html(out, document.answers);
  }
  out += "</main>\n<p id=page-status class=unseen role=status></p>\n";
  if (!lengths.empty()) out += fmt::format("<script>{}</script>\n", chart_library.text);
  out += fmt::format("<script>{}</script>\n</body>\n</html>\n", page_script.text);
  return out;
}

}  // namespace

std::string render_html(const Document& document) {
  struct Attempt {
    RowLimits limits;
    std::size_t accepted = max_bytes;
  };
  // Cuts appendices first. A thousand rows of the widest table take half a megabyte. Hundreds of machines have hundreds
  // of tables.
  constexpr Attempt attempts[] = {{{1000, 1000}},
                                  {{1000, 500}},
                                  {{1000, 250}},
                                  {{500, 100}},
                                  {{200, 50}},
                                  {{50, 20}, hard_max_bytes},
                                  {{20, 10}, hard_max_bytes},
                                  {{5, 2}, hard_max_bytes}};
  std::string out;
  for (const Attempt& attempt : attempts) {
    out = page(document, attempt.limits);
    if (out.size() <= attempt.accepted) break;
  }
  return out;
}

}  // namespace assay::report
