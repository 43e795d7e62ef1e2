// Ids, signs, cells and tables of the HTML page.
#include "reports/render/escape.h"
#include "reports/render/html_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace assay::report {

namespace {

std::string slug(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    if (plain)
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  // Reserved for ids of the page itself.
  if (out.empty() || out.starts_with("page-")) out = "x-" + out;
  return out;
}

constexpr int long_text = 32;  // columns; longer ones get a column that is not narrow

// The number to sort by: the explicit one, else that of the data.
std::optional<double> sort_key(const Cell& cell) {
  if (cell.sort) return cell.sort;
  const Json* number = &cell.data;
  if (number->is_object() && number->contains("value")) number = &number->at("value");
  if (number->is_number()) return number->get<double>();
  return std::nullopt;
}

// Omits end tags of cells and rows, as HTML allows: long pages get a fifth smaller.
void cell_html(std::string& out, const Cell& cell, bool heads_row, const Ids& ids) {
  const std::string text = html_escape(cell.text);
  out += heads_row ? "<th" : "<td";
  if (cell.tone == Tone::bad)
    out += " class=strong";
  else if (cell.tone == Tone::faint && text != "–")
    out += " class=faint";
  else if (cell.heat > 0)
    out += " class=h" + std::to_string(std::min(cell.heat, 6));
  if (!heads_row && display_width(text) > long_text) out += " data-long";
  if (const auto key = sort_key(cell); key && std::isfinite(*key))
    if (const std::string number = short_number(*key); number != text) out += " data-v=" + number;
  out += '>';
  out += sign_html(cell.tone);
  const std::string target = cell.link.empty() ? "" : ids.target(cell.link);
  out += target.empty() ? text : fmt::format("<a href=#{}>{}</a>", target, text);
}

// "r2 r4": right-aligned columns; "rest": all but the first, for tables wider than the style has names for.
std::string right_columns(const Table& table) {
  constexpr std::size_t named = 16;
  if (table.columns.size() > named && std::all_of(table.columns.begin() + 1, table.columns.end(),
                                                  [](const Column& column) { return column.align == Align::right; }))
    return "rest";
  std::string names;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].align == Align::right) names += fmt::format("{}r{}", names.empty() ? "" : " ", c + 1);
  return names;
}

}  // namespace

Ids::Ids(const Document& document, const RowLimits& limits) {
  for (const Section& section : document.sections) add(section.id);
  for (const Section& section : document.sections) {
    for (const Block& block : section.blocks) {
      if (const auto* figure = std::get_if<Figure>(&block)) add(figure->id);
      if (const auto* bars = std::get_if<Bars>(&block)) add(bars->id);
      if (const auto* table = std::get_if<Table>(&block)) {
        add(table->id);
        const std::size_t shown = std::min(table->rows.size(), limits.of(section));
        for (std::size_t row = 0; row < std::min(shown, table->anchors.size()); ++row) add(table->anchors[row]);
      }
    }
  }
}

void Ids::add(const std::string& name) {
  if (name.empty() || ids_.contains(name)) return;
  const std::string base = slug(name);
  std::string id = base;
  for (int i = 2; !used_.insert(id).second; ++i) id = fmt::format("{}-{}", base, i);
  ids_[name] = id;
}

std::string Ids::attribute(const std::string& name) {
  const auto found = ids_.find(name);
  if (found == ids_.end() || !given_.insert(name).second) return "";
  return " id=" + found->second;
}

std::string Ids::target(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? "" : found->second;
}

std::string_view sign_html(Tone tone) {
  return name_of(tone, {"", "<i class=good>✓</i> ", "<i class=warn title=attention>!</i> ", "<i class=bad>✗</i> ", ""});
}

std::string short_number(double value) {
  std::string text = fmt::format("{:.5g}", value);
  // 5.9e+09 -> 5.9e9
  if (const std::size_t e = text.find('e'); e != text.npos) {
    if (text[e + 1] == '+') text.erase(e + 1, 1);
    const std::size_t digits = text[e + 1] == '-' ? e + 2 : e + 1;
    if (text[digits] == '0') text.erase(digits, 1);
  }
  return text;
}

void table_html(std::string& out, const Table& table, const std::string& name, std::size_t max_rows, Ids& ids) {
  if (table.columns.empty()) return;
  const std::string title = html_escape(table.title);
  // Focusable, so that it can be scrolled with the keyboard.
  out += fmt::format("<div class=box role=region tabindex=0 aria-label=\"{}\">\n<table{} class=\"{}\">\n",
                     title.empty() ? html_escape(name) : title, ids.attribute(table.id), right_columns(table));
  if (!title.empty()) out += "<caption>" + title + "</caption>\n";
  out += "<thead><tr>";
  for (const Column& column : table.columns) out += "<th scope=col>" + html_escape(column.title);
  out += "\n<tbody>\n";
  const std::size_t shown = std::min(max_rows, table.rows.size());
  for (std::size_t r = 0; r < shown; ++r) {
    out += "<tr" + (r < table.anchors.size() ? ids.attribute(table.anchors[r]) : "") + ">";
    for (std::size_t c = 0; c < table.columns.size() && c < table.rows[r].size(); ++c)
      cell_html(out, table.rows[r][c], c == 0, ids);
    out += '\n';
  }
  out += "</table>\n</div>\n";
  if (shown < table.rows.size())
    out += fmt::format("<p><i class=warn>!</i> {} of {} rows, to keep the page small. The JSON report has all.</p>\n",
                       shown, table.rows.size());
}

}  // namespace assay::report
