// A Document as GitHub-flavoured Markdown.
#include "reports/render/escape.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::report {

namespace {

std::string sign(Tone tone) { return std::string(name_of(tone, {"", "", "⚠ ", "**✗** ", ""})); }

void table_markdown(std::string& out, const Table& table) {
  if (!table.title.empty()) out += "**" + markdown_escape(table.title) + "**\n\n";
  out += "|";
  for (const Column& column : table.columns) out += " " + markdown_escape(column.title) + " |";
  out += "\n|";
  for (const Column& column : table.columns) out += column.align == Align::right ? " ---: |" : " --- |";
  out += "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const Cell& cell : row) out += " " + sign(cell.tone) + markdown_escape(cell.text) + " |";
    out += "\n";
  }
  out += "\n";
}

// A fence longer than any run of backticks in the text.
void verbatim_markdown(std::string& out, const std::string& text) {
  std::size_t longest = 2, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  out += fence + "\n";
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    out += printable(std::string_view(text).substr(from, end - from)) + "\n";
    from = end + 1;
  }
  out += fence + "\n\n";
}

void section_markdown(std::string& out, const Section& section) {
  if (!section.title.empty()) out += "## " + markdown_escape(section.title) + "\n\n";
  for (const Block& block : section.blocks) {
    if (const auto* text = std::get_if<Text>(&block)) out += sign(text->tone) + markdown_escape(text->text) + "\n\n";
    if (const auto* table = std::get_if<Table>(&block)) table_markdown(out, *table);
    if (const auto* verbatim = std::get_if<Verbatim>(&block)) verbatim_markdown(out, verbatim->text);
    if (const auto* list = std::get_if<List>(&block)) {
      for (const std::string& item : list->items) out += "- " + markdown_escape(item) + "\n";
      out += "\n";
    }
    if (const auto* figure = std::get_if<Figure>(&block)) out += "*" + markdown_escape(figure->alt) + "*\n\n";
  }
}

}  // namespace

std::string render_markdown(const Document& document) {
  std::string out = "# " + markdown_escape(document.title) + "\n\n";
  if (!document.verdict.empty()) out += "**" + markdown_escape(document.verdict) + "**\n\n";
  if (!document.headline.empty()) out += markdown_escape(document.headline) + "\n\n";
  for (const bool leading : {true, false}) {
    for (const Section& section : document.sections)
      if (section.leads == leading) section_markdown(out, section);
    if (!leading) break;
    for (const Answer& answer : document.answers)
      out += fmt::format("- {}**{}** {}\n", sign(answer.tone), markdown_escape(answer.title),
                         markdown_escape(answer.text));
    if (!document.answers.empty()) out += "\n";
  }
  out.pop_back();
  return out;
}

}  // namespace assay::report
