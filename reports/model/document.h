// The one form of every report: sections of text, tables and figures, drawn by the renderers. Free of devices and of
// layout.
#pragma once

#include "harness/core/json_fwd.h"
#include "harness/statistics/statistics.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace assay::report {

// What a reader should feel about a cell or a verdict; renderers choose colour and sign.
enum class Tone { plain, good, warn, bad, faint };

struct Cell {
  std::string text;  // for people: "412 GFLOP/s"
  Json data = {};    // for machines, base units: {"value":4.12e11,"unit":"FLOP/s"}; null repeats the text
  Tone tone = Tone::plain;
  std::string link = {};  // of a section or an anchor of this document ("r-0123"), where the figure comes from
  std::optional<double> sort = {};  // what sortable tables sort by; absent: the text
  int heat = 0;                     // of a heat map: 0 plain, up to 6 the farthest on the bad side
};

enum class Align { left, right };

struct Column {
  std::string id;  // member name in JSON
  std::string title;
  Align align = Align::left;
};

struct Table {
  std::string id;
  std::string title;  // may be empty
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;    // one cell a column
  std::vector<std::string> anchors = {};  // of each row, to link to; empty: none
};

struct Text {
  std::string text;
  Tone tone = Tone::plain;
};

// Kept as it is, in a fixed-width face (a table in another tool's form).
struct Verbatim {
  std::string id;
  std::string text;
};

struct List {
  std::string id;
  std::vector<std::string> items;
};

// A picture. Whatever it shows stands in a table too: terminals have no pictures, and neither do all readers.
struct Point {
  double x = 0;
  double y = 0;
  std::optional<Interval> range = {};  // of y
  std::string label = {};              // what the point is, when one points at it
};

enum class Mark { line, points, line_and_points, bars };

struct Curve {
  std::string name;
  Mark mark = Mark::points;
  std::vector<Point> points;
  bool reference = false;  // a roof, a fit, a sheet's figure: drawn dashed
};

struct Axis {
  std::string title;
  std::string unit;  // base unit; renderers choose a people-sized one
  bool logarithmic = false;
  std::vector<std::string> categories = {};  // names of x = 0, 1, 2, ...: for bars
};

struct Figure {
  std::string id;
  std::string title;
  std::string alt;  // what it shows, in a sentence with its figures, for who cannot see it
  Axis x;
  Axis y;
  std::vector<Curve> curves;  // at most five
};

using Block = std::variant<Text, Table, Verbatim, List, Figure>;

struct Section {
  std::string id;
  std::string title;  // empty: no heading
  std::vector<Block> blocks;
  bool in_terminal = true;  // false: only in files (long appendices)
};

struct Document {
  std::string title;
  std::string headline;     // one line: machine, plan, time
  std::string verdict;      // one line: held, failed, skipped
  Tone tone = Tone::plain;  // of the verdict
  std::vector<Section> sections;
};

}  // namespace assay::report
