// Ids, signs, cells and tables of the HTML page.
#include "reports/render/escape.h"
#include "reports/render/html_parts.h"

#include <fmt/format.h>

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
  // Ids of the page itself begin with "page-".
  if (out.empty() || out.starts_with("page-")) out = "x-" + out;
  return out;
}

// What a cell is sorted by: what it says itself, else the number that it stands for.
std::optional<double> sort_key(const Cell& cell) {
  if (cell.sort) return cell.sort;
  const Json* number = &cell.data;
  if (number->is_object() && number->contains("value")) number = &number->at("value");
  if (number->is_number()) return number->get<double>();
  return std::nullopt;
}

void cell_html(std::string& out, const Cell& cell, const Column& column, bool heads_row, const Ids& ids) {
  const char* element = heads_row ? "th" : "td";
  out += fmt::format("<{}{}", element, heads_row ? " scope=\"row\"" : "");
  const std::string_view tone = tone_class(cell.tone);
  const std::string_view side = column.align == Align::right ? "r" : "";
  if (!tone.empty() || !side.empty())
    out += fmt::format(" class=\"{}{}{}\"", side, !side.empty() && !tone.empty() ? " " : "", tone);
  if (const auto key = sort_key(cell); key && std::isfinite(*key)) out += fmt::format(" data-v=\"{:.9g}\"", *key);
  out += '>' + sign_html(cell.tone);
  const std::string target = cell.link.empty() ? "" : ids.target(cell.link);
  const std::string text = html_escape(cell.text);
  out += target.empty() ? text : fmt::format("<a href=\"#{}\">{}</a>", target, text);
  out += fmt::format("</{}>", element);
}

}  // namespace

Ids::Ids(const Document& document) {
  for (const Section& section : document.sections) add(section.id);
  for (const Section& section : document.sections) {
    for (const Block& block : section.blocks) {
      if (const auto* figure = std::get_if<Figure>(&block)) add(figure->id);
      if (const auto* table = std::get_if<Table>(&block)) {
        add(table->id);
        for (const std::string& anchor : table->anchors) add(anchor);
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
  return fmt::format(" id=\"{}\"", found->second);
}

std::string Ids::target(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? "" : found->second;
}

std::string sign_html(Tone tone) {
  const auto sign = [](const char* name, const char* word, const char* mark) {
    return fmt::format("<span class=\"sign {}\" role=\"img\" aria-label=\"{}\">{}</span> ", name, word, mark);
  };
  switch (tone) {
    case Tone::good: return sign("good", "good:", "✓");
    case Tone::warn: return sign("warn", "attention:", "!");
    case Tone::bad: return sign("bad", "bad:", "✗");
    case Tone::plain:
    case Tone::faint: break;
  }
  return "";
}

std::string_view tone_class(Tone tone) {
  switch (tone) {
    case Tone::bad: return "strong";
    case Tone::faint: return "faint";
    default: return "";
  }
}

void table_html(std::string& out, const Table& table, Ids& ids) {
  if (table.columns.empty()) return;
  const std::string title = html_escape(table.title);
  // The box takes the keyboard's focus, so that it can be scrolled without a mouse.
  out += fmt::format("<div class=\"box\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table{}>\n",
                     title.empty() ? "table" : title, ids.attribute(table.id));
  if (!title.empty()) out += "<caption>" + title + "</caption>\n";
  out += "<thead><tr>";
  for (const Column& column : table.columns)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", column.align == Align::right ? " class=\"r\"" : "",
                       html_escape(column.title));
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    out += fmt::format("<tr{}>", r < table.anchors.size() ? ids.attribute(table.anchors[r]) : "");
    for (std::size_t c = 0; c < table.columns.size() && c < table.rows[r].size(); ++c)
      cell_html(out, table.rows[r][c], table.columns[c], c == 0, ids);
    out += "</tr>\n";
  }
  out += "</tbody>\n</table>\n</div>\n";
}

}  // namespace assay::report
