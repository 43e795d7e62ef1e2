// A Document as text for a terminal: aligned columns, optional colour.
#include "reports/render/escape.h"
#include "reports/render/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace assay::report {

namespace {

std::string_view colour_of(Tone tone) { return name_of(tone, {"", "\x1b[32m", "\x1b[33m", "\x1b[1;31m", "\x1b[2m"}); }

// A terminal has one shade for the slower half of a heat map.
Tone tone_of(const Cell& cell) { return cell.tone == Tone::plain && cell.heat >= 3 ? Tone::warn : cell.tone; }

class Writer {
 public:
  explicit Writer(const TerminalStyle& style) : style_(style) {}

  void paint(std::string_view text, Tone tone) {
    const std::string_view colour = style_.colour ? colour_of(tone) : "";
    out_ += colour;
    out_ += text;
    if (!colour.empty()) out_ += "\x1b[0m";
  }

  void end_line() {
    while (!out_.empty() && out_.back() == ' ') out_.pop_back();
    out_ += '\n';
  }

  // Wraps words at the width and indents following lines. Cuts words longer than a line (keys, paths).
  void wrapped(std::string_view text, Tone tone, std::string_view indent) {
    std::string line;
    const std::string clean = printable(text);
    std::string_view rest = clean;
    bool cut = false;
    while (!rest.empty()) {
      const std::size_t space = rest.find(' ');
      std::string_view word = rest.substr(0, space);
      if (!line.empty() && (cut || display_width(line) + 1 + display_width(word) > style_.width)) {
        paint(line, tone);
        end_line();
        line = indent;
      } else if (!line.empty() && line != indent) {
        line += ' ';
      }
      const std::size_t whole = word.size();
      word = word.substr(0, fitting(word, style_.width - display_width(line)));
      cut = word.size() < whole;
      line += word;
      rest.remove_prefix(cut || space == std::string_view::npos ? word.size() : space + 1);
    }
    paint(line, tone);
    end_line();
  }

  void heading(std::string_view text) {
    if (style_.colour) out_ += "\x1b[1m";
    wrapped(text, Tone::plain, "");
    if (style_.colour) out_ += "\x1b[0m";
  }

  void table(const Table& table, bool first_in_section) {
    if (table.columns.empty()) return;
    if (!table.title.empty()) {
      if (!first_in_section) end_line();
      wrapped(table.title, Tone::plain, "");
    }
    for (const auto& columns : parts(fitting_widths(table))) part(table, columns);
  }

  std::string text() { return std::move(out_); }

 private:
  static constexpr int gap = 2;

  static constexpr int min_width = 12;  // of a shortened text

  struct Part {
    std::size_t column;
    int width;
  };

  // Shortens texts, the widest first, until the table fits; never cuts figures.
  std::vector<int> fitting_widths(const Table& table) const {
    std::vector<int> widths;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      int width = display_width(printable(table.columns[c].title));
      for (const auto& row : table.rows)
        if (c < row.size()) width = std::max(width, display_width(printable(row[c].text)));
      widths.push_back(width);
    }
    int total = gap * (static_cast<int>(widths.size()) - 1);
    for (const int width : widths) total += width;
    while (total > style_.width) {
      std::size_t widest = widths.size();
      for (std::size_t c = 0; c < widths.size(); ++c)
        if (table.columns[c].align == Align::left && widths[c] > min_width &&
            (widest == widths.size() || widths[c] > widths[widest]))
          widest = c;
      if (widest == widths.size()) break;
      // Down to the next widest text, so that two long ones share the cut.
      int next = min_width;
      for (std::size_t c = 0; c < widths.size(); ++c)
        if (table.columns[c].align == Align::left && widths[c] < widths[widest]) next = std::max(next, widths[c]);
      const int cut = std::min(total - style_.width, std::max(1, widths[widest] - next));
      widths[widest] -= cut;
      total -= cut;
    }
    for (int& width : widths) width = std::min(width, style_.width);
    return widths;
  }

  // Splits the columns into as many parts as needed; each part repeats the first column to name its rows.
  std::vector<std::vector<Part>> parts(const std::vector<int>& widths) const {
    std::vector<std::vector<Part>> parts = {{{0, widths[0]}}};
    int used = widths[0];
    for (std::size_t c = 1; c < widths.size(); ++c) {
      if (used + gap + widths[c] > style_.width && parts.back().size() > 1) {
        parts.push_back({{0, widths[0]}});
        used = widths[0];
      }
      parts.back().push_back({c, std::min(widths[c], std::max(min_width, style_.width - used - gap))});
      used += gap + parts.back().back().width;
    }
    return parts;
  }

  void part(const Table& table, const std::vector<Part>& columns) {
    for (const auto& [c, width] : columns)
      field(printable(table.columns[c].title), Tone::faint, table.columns[c].align, width, c == 0);
    end_line();
    for (const auto& row : table.rows) {
      for (const auto& [c, width] : columns)
        if (c < row.size()) field(printable(row[c].text), tone_of(row[c]), table.columns[c].align, width, c == 0);
      end_line();
    }
  }

  void field(std::string_view text, Tone tone, Align align, int width, bool first) {
    if (!first) out_.append(gap, ' ');
    const std::string shown = shorten(text, width);
    const auto padding = static_cast<std::size_t>(std::max(0, width - display_width(shown)));
    if (align == Align::right) out_.append(padding, ' ');
    paint(shown, tone);
    if (align == Align::left) out_.append(padding, ' ');
  }

  TerminalStyle style_;
  std::string out_;
};

void verbatim_lines(Writer& writer, const std::string& text) {
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    writer.paint(printable(std::string_view(text).substr(from, end - from)), Tone::plain);
    writer.end_line();
    from = end + 1;
  }
}

void section_lines(Writer& writer, const Section& section) {
  if (!section.title.empty()) {
    writer.end_line();
    writer.heading(section.title);
  }
  for (const Block& block : section.blocks) {
    if (const auto* text = std::get_if<Text>(&block)) writer.wrapped(text->text, text->tone, "  ");
    if (const auto* table = std::get_if<Table>(&block)) writer.table(*table, &block == &section.blocks.front());
    if (const auto* verbatim = std::get_if<Verbatim>(&block)) verbatim_lines(writer, verbatim->text);
    if (const auto* list = std::get_if<List>(&block))
      for (const std::string& item : list->items) writer.wrapped("- " + item, Tone::plain, "  ");
  }
}

}  // namespace

std::string render_terminal(const Document& document, const TerminalStyle& style) {
  Writer writer(style);
  if (!document.headline.empty()) writer.wrapped(document.headline, Tone::plain, "  ");
  for (const bool leading : {true, false}) {
    for (const Section& section : document.sections)
      if (section.in_terminal && section.leads == leading) section_lines(writer, section);
    if (!leading) break;
    if (std::ranges::any_of(document.sections, &Section::leads)) writer.end_line();
    for (const Answer& answer : document.answers)
      writer.wrapped(fmt::format("{:<7} {}", answer.title, answer.text), answer.tone, "        ");
  }
  if (!document.verdict.empty()) writer.wrapped(document.verdict, document.tone, "  ");
  return writer.text();
}

}  // namespace assay::report
