// A Document as text for a terminal: aligned columns, colour only where it is wanted.
#include "reports/render/escape.h"
#include "reports/render/render.h"

#include <algorithm>
#include <string_view>

namespace assay::report {

namespace {

std::string_view colour_of(Tone tone) {
  switch (tone) {
    case Tone::good: return "\x1b[32m";
    case Tone::warn: return "\x1b[33m";
    case Tone::bad: return "\x1b[1;31m";
    case Tone::faint: return "\x1b[2m";
    case Tone::plain: break;
  }
  return "";
}

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

  // Words wrapped at the width; following lines are indented. A word longer than a line (a key, a path) is cut.
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

  void table(const Table& table) {
    if (table.columns.empty()) return;
    if (!table.title.empty()) wrapped(table.title, Tone::plain, "");
    std::vector<int> widths;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      int width = display_width(table.columns[c].title);
      for (const auto& row : table.rows) width = std::max(width, display_width(printable(row[c].text)));
      widths.push_back(width);
    }
    fit(widths);
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      field(table.columns[c].title, Tone::faint, table.columns[c].align, widths[c], c == 0);
    end_line();
    for (const auto& row : table.rows) {
      for (std::size_t c = 0; c < row.size(); ++c)
        field(printable(row[c].text), row[c].tone, table.columns[c].align, widths[c], c == 0);
      end_line();
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static constexpr int gap = 2;

  // The widest column gives way until the table fits.
  void fit(std::vector<int>& widths) const {
    const auto total = [&] {
      int sum = gap * (static_cast<int>(widths.size()) - 1);
      for (const int width : widths) sum += width;
      return sum;
    };
    while (total() > style_.width) {
      const auto widest = std::max_element(widths.begin(), widths.end());
      if (*widest <= 12) break;
      *widest = std::max(12, *widest - (total() - style_.width));
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

}  // namespace

std::string render_terminal(const Document& document, const TerminalStyle& style) {
  Writer writer(style);
  if (!document.headline.empty()) writer.wrapped(document.headline, Tone::plain, "  ");
  for (const Section& section : document.sections) {
    if (!section.in_terminal) continue;
    if (!section.title.empty()) {
      writer.end_line();
      writer.wrapped(section.title, Tone::plain, "");
    }
    for (const Block& block : section.blocks) {
      if (const auto* text = std::get_if<Text>(&block)) writer.wrapped(text->text, text->tone, "  ");
      if (const auto* table = std::get_if<Table>(&block)) writer.table(*table);
      if (const auto* verbatim = std::get_if<Verbatim>(&block)) verbatim_lines(writer, verbatim->text);
      if (const auto* list = std::get_if<List>(&block))
        for (const std::string& item : list->items) writer.wrapped("- " + item, Tone::plain, "  ");
    }
  }
  if (!document.verdict.empty()) writer.wrapped(document.verdict, document.tone, "  ");
  return writer.take();
}

}  // namespace assay::report
