#include "reports/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace assay::report {

namespace {

// Lines of a screen of 100 columns, and bytes of a text that takes one to three of them.
constexpr std::size_t max_lines = 40, one_line_bytes = 90, two_lines_bytes = 165, three_lines_bytes = 250;
constexpr std::size_t max_failed = 3, max_texts = 2, max_figures = 10, min_figures = 3, max_changes = 3;

// Whole words of a text, and a sign of what was cut.
std::string shortened(const std::string& text, std::size_t bytes = two_lines_bytes) {
  if (text.size() <= bytes) return text;
  std::size_t end = text.rfind(' ', bytes);
  if (end == std::string::npos || end == 0)
    for (end = bytes; end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80;) --end;  // whole characters
  return text.substr(0, end) + " …";
}

class Screen {
 public:
  explicit Screen(const Document& whole) : whole_(whole) {}

  Document make() {
    Document screen{whole_.title, shortened(whole_.headline), whole_.verdict, whole_.tone, {}};
    left_ -= 3;  // headline and verdict
    for (const Answer& answer : whole_.answers) {
      screen.answers.push_back({answer.id, answer.title, shortened(answer.text, three_lines_bytes), answer.tone, {}});
      left_ -= screen.answers.back().text.size() > two_lines_bytes ? 3 : 2;
    }
    std::map<std::string, Section> kept;
    for (const char* id : {"attention", "unreadable", "diagnosis", "sweeps", "pairs"})
      if (const Section* section = find(id))
        kept.emplace(id, std::string_view(id) == "diagnosis" ? changes(*section) : words(*section));
    // Hosts of one run are shown side by side in place of each one's figures.
    const Section* figures = find("hosts") ? find("hosts") : find("figures");
    if (figures) kept.emplace(figures->id, rows(*figures));
    for (const Section& section : whole_.sections)
      if (const auto found = kept.find(section.id); found != kept.end() && !found->second.blocks.empty())
        screen.sections.push_back(std::move(found->second));
    return screen;
  }

 private:
  const Section* find(std::string_view id) const {
    const auto found = std::ranges::find(whole_.sections, id, &Section::id);
    return found == whole_.sections.end() ? nullptr : &*found;
  }

  void add(Section& section, Block block, std::size_t lines) {
    section.blocks.push_back(std::move(block));
    left_ -= std::min(left_, lines);
  }

  Section begin(const Section& section) {
    left_ -= std::min<std::size_t>(left_, 2);
    return {section.id, section.title, {}};
  }

  void say_cut(Section& section, std::size_t count) {
    if (count > 0) add(section, Text{fmt::format("{} more on the page, or with --all.", count), Tone::faint}, 1);
  }

  // The first texts and items.
  Section words(const Section& section) {
    Section kept = begin(section);
    std::size_t texts = 0, items = 0;
    for (const Block& block : section.blocks) {
      if (const auto* text = std::get_if<Text>(&block); text && ++texts <= max_texts)
        add(kept, Text{shortened(text->text, one_line_bytes), text->tone}, 1);
      if (const auto* list = std::get_if<List>(&block))
        for (const std::string& item : list->items)
          if (++items <= max_failed) add(kept, List{"", {shortened(item, one_line_bytes)}}, 1);
    }
    say_cut(kept, texts - std::min(texts, max_texts) + items - std::min(items, max_failed));
    return kept;
  }

  // "at most 4.98 x: train gpt2-tiny f32: the best product in bf16 is ...: train in that precision ...", once a rule.
  Section changes(const Section& section) {
    Section kept = begin(section);
    const Table* table = nullptr;
    const List* fixes = nullptr;
    for (const Block& block : section.blocks) {
      if (const auto* found = std::get_if<Table>(&block); found && found->id == "diagnosis") table = found;
      if (const auto* found = std::get_if<List>(&block); found && found->id == "fixes") fixes = found;
    }
    std::set<std::string> rules;
    for (std::size_t r = 0; table && fixes && r < table->rows.size(); ++r) {
      const auto& row = table->rows[r];
      if (!rules.insert(row[0].text).second || rules.size() > max_changes) continue;
      std::string fix;
      for (const std::string& one : fixes->items)
        if (one.starts_with(row[0].text + ": ")) fix = one.substr(row[0].text.size());
      const std::string gain = row[4].data.is_null() ? "" : row[4].text + ": ";
      add(kept, List{"changes", {shortened(fmt::format("{}{}: {}{}", gain, row[2].text, row[3].text, fix))}}, 2);
    }
    say_cut(kept, rules.size() - std::min(rules.size(), max_changes));
    return kept;
  }

  // As many rows as there is room for, with the columns that say what a figure is worth.
  Section rows(const Section& section) {
    static const std::set<std::string> left_out = {"published", "verdict"};
    Section kept = begin(section);
    const std::size_t max_rows = std::clamp<std::size_t>(left_ > 3 ? left_ - 3 : 0, min_figures, max_figures);
    std::size_t count = 0;
    for (const Block& block : section.blocks) {
      const auto* table = std::get_if<Table>(&block);
      if (const auto* text = std::get_if<Text>(&block); text && kept.blocks.empty() && section.id == "hosts")
        add(kept, Text{shortened(text->text, one_line_bytes), text->tone}, 1);
      if (!table || table->id != section.id) continue;
      Table part{table->id, table->title, {}};
      for (const Column& column : table->columns)
        if (!left_out.contains(column.id)) part.columns.push_back(column);
      for (const auto& row : table->rows) {
        if (++count > max_rows) continue;
        part.rows.emplace_back();
        for (std::size_t c = 0; c < table->columns.size(); ++c)
          if (!left_out.contains(table->columns[c].id)) part.rows.back().push_back(row[c]);
      }
      if (!part.rows.empty()) add(kept, std::move(part), 0);
    }
    say_cut(kept, count - std::min(count, max_rows));
    return kept;
  }

  const Document& whole_;
  std::size_t left_ = max_lines;
};

}  // namespace

Document one_screen(const Document& whole) { return Screen(whole).make(); }

}  // namespace assay::report
