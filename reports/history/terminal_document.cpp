// The page of a history cut to a screen, however many series and events there are.
#include "harness/core/text.h"
#include "reports/history/document.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace assay::history {

namespace {

using report::Block;
using report::Document;

constexpr std::ptrdiff_t screen_lines = 40;

std::ptrdiff_t lines_of(const Document& document) {
  return std::ranges::count(report::render_terminal(document, {}), '\n');
}

std::string shortened(const std::string& text) {
  constexpr std::size_t most = 190;
  return text.size() <= most ? text : one_line(text, most);
}

// At most so many rows and items, each shortened. Returns how many were left out.
std::size_t cut(Block& block, std::size_t rows) {
  const auto keep = [&](auto& all) {
    const std::size_t more = all.size() - std::min(all.size(), rows);
    all.resize(all.size() - more);
    return more;
  };
  if (auto* table = std::get_if<report::Table>(&block)) {
    for (auto& row : table->rows)
      for (report::Cell& cell : row) cell.text = shortened(cell.text);
    return keep(table->rows);
  }
  if (auto* list = std::get_if<report::List>(&block)) {
    for (std::string& item : list->items) item = shortened(item);
    return keep(list->items);
  }
  if (auto* text = std::get_if<report::Text>(&block)) text->text = shortened(text->text);
  return 0;
}

// `sections`: how many are kept, those that matter least last.
Document cut(Document document, std::size_t rows, std::size_t sections) {
  std::erase_if(document.sections, [](const report::Section& one) { return !one.in_terminal; });
  const std::size_t gone = document.sections.size() - std::min(document.sections.size(), sections);
  document.sections.resize(document.sections.size() - gone);
  for (report::Section& section : document.sections) {
    std::erase_if(section.blocks, [](const Block& one) { return std::holds_alternative<report::Figure>(one); });
    std::size_t left_out = 0;
    if (section.blocks.size() > rows + 1) {
      left_out += section.blocks.size() - (rows + 1);
      section.blocks.resize(rows + 1);
    }
    for (Block& block : section.blocks) left_out += cut(block, rows);
    if (left_out > 0)
      section.blocks.emplace_back(report::Text{fmt::format("... {} more", left_out), report::Tone::faint});
  }
  report::Section rest{"rest", "", {}};
  rest.blocks.emplace_back(report::Text{"Cut to a screen: --html FILE has all, and --json.", report::Tone::faint});
  document.sections.push_back(std::move(rest));
  return document;
}

}  // namespace

Document terminal_document(const History& history) {
  Document document = history_document(history);
  if (lines_of(document) <= screen_lines) return document;
  Document shown;
  for (const std::size_t rows : {8u, 5u, 3u, 2u, 1u})
    if (shown = cut(document, rows, document.sections.size()); lines_of(shown) <= screen_lines) return shown;
  for (std::size_t sections = document.sections.size(); sections > 1; --sections)
    if (shown = cut(document, 1, sections); lines_of(shown) <= screen_lines) return shown;
  return shown;
}

}  // namespace assay::history
