// The form of every report: sections of text, tables and figures, which the renderers draw. Knows no device and no
// layout.
#pragma once

#include "harness/core/words.h"
#include "harness/json/fwd.h"
#include "harness/statistics/direction.h"
#include "harness/statistics/statistics.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace assay::report {

// How good or bad a cell or verdict is; renderers choose colour and sign.
enum class Tone { plain, good, warn, bad, faint };
using assay::name_of;
// How one renderer shows tones, in the order of Tone.
using ToneWords = std::array<std::string_view, 5>;
constexpr std::string_view name_of(Tone tone, const ToneWords& words) { return words[static_cast<std::size_t>(tone)]; }

constexpr Tone tone_of(Direction direction) {
  switch (direction) {
    case Direction::slower: return Tone::bad;
    case Direction::faster: return Tone::good;
    case Direction::same: return Tone::plain;
    case Direction::unknown: break;
  }
  return Tone::warn;
}

struct Cell {
  std::string text;  // text for people: "412 GFLOP/s"
  Json data = {};    // data for machines, base units: {"value":4.12e11,"unit":"FLOP/s"}; null repeats the text
  Tone tone = Tone::plain;
  std::string link = {};            // a section or anchor of this document ("r-0123") that the figure comes from
  std::optional<double> sort = {};  // key by which sortable tables sort; if absent, the text
  int heat = 0;                     // in a heat map: 0 is plain, 6 the worst
};

enum class Align { left, right };

struct Column {
  std::string id;  // member name in JSON
  std::string title = id;
  Align align = Align::left;
};

// A column of numbers.
inline Column right(const std::string& id) { return {id, id, Align::right}; }
inline Column right(std::string id, std::string title) { return {std::move(id), std::move(title), Align::right}; }

struct Table {
  std::string id;
  std::string title;  // may be empty
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows = {};  // one cell per column
  std::vector<std::string> anchors = {};     // one per row, to link to; may be empty
};

struct Text {
  std::string text;
  Tone tone = Tone::plain;
};

// Shown unchanged in a fixed-width font (a table in another tool's form).
struct Verbatim {
  std::string id;
  std::string text;
};

struct List {
  std::string id;
  std::vector<std::string> items;
};

// A picture. Everything it shows is in a table too: terminals and some readers have no pictures.
struct Point {
  double x = 0;
  double y = 0;
  std::optional<Interval> range = {};  // range of y
  std::string label = {};              // shown on hover
};

enum class Mark { line, points, line_and_points, bars };
constexpr auto words(Mark) { return std::to_array<std::string_view>({"line", "points", "both", "bars"}); }

struct Curve {
  std::string name;
  Mark mark = Mark::points;
  std::vector<Point> points;
  bool reference = false;  // a roof, a fit, a figure from a sheet: drawn dashed
};

struct Axis {
  std::string title;
  std::string unit;  // base unit; renderers choose a readable one
  bool logarithmic = false;
  std::vector<std::string> categories = {};  // names of x = 0, 1, 2, ...: for bars
};

struct Figure {
  std::string id;
  std::string title;
  std::string alt;  // describes it in a sentence with its figures, for readers who cannot see it
  Axis x;
  Axis y;
  std::vector<Curve> curves;  // at most five
};

// Bars drawn without scripts, one per row, each on a scale of its own from 0 to 1. Its figures are in its texts, so
// terminals and other formats leave it out where a table has them too.
struct BarRow {
  std::string label;
  std::string text;                        // the figure, for people: "229 GFLOP/s ± 0.7 %"
  std::vector<double> parts;               // stacked from 0; their sum is at most 1
  std::optional<Interval> range = {};      // range of the bar's end
  std::optional<double> peak = {};         // a line
  std::optional<Interval> reference = {};  // a shade
  std::vector<Interval> published = {};    // ticks at both edges
  std::optional<Interval> usual = {};      // a line at the lower edge
  std::vector<double> strip = {};          // a curve over the whole width in place of parts, from 0 to 1
  std::string link = {};                   // like Cell::link
};

struct Bars {
  std::string id;
  std::string title;
  std::string note;                // meaning of the marks
  std::vector<std::string> parts;  // names of the parts, if there are several
  std::vector<BarRow> rows;
};

using Block = std::variant<Text, Table, Verbatim, List, Figure, Bars>;

struct Section {
  std::string id;
  std::string title;  // empty for no heading
  std::vector<Block> blocks;
  bool in_terminal = true;  // false: only in files (long appendices)
  bool leads = false;       // shown before the answers
};

// The answer to a question, in a sentence.
struct Answer {
  std::string id;     // member name in JSON
  std::string title;  // "Steady"
  std::string text;   // "yes: others used at most 0.01 CPUs while a case was measured"
  Tone tone = Tone::plain;
  std::vector<std::string> evidence;  // reasons for the answer, a line each
};

struct Document {
  std::string title;
  std::string headline;     // one line: machine, plan, time
  std::string verdict;      // one line: held, failed, skipped
  Tone tone = Tone::plain;  // the verdict's tone
  std::vector<Section> sections;
  std::vector<Answer> answers = {};  // shown before the sections
  Json members = Json::object();     // further members of its JSON
};

}  // namespace assay::report
