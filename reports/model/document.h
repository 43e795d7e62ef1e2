// The one form of every report: sections of text and tables, drawn by the renderers. Free of devices and of layout.
#pragma once

#include "harness/core/json_fwd.h"

#include <nlohmann/json.hpp>

#include <string>
#include <variant>
#include <vector>

namespace assay::report {

// What a reader should feel about a cell or a verdict; renderers choose colour and sign.
enum class Tone { plain, good, warn, bad, faint };

struct Cell {
  std::string text;  // for people: "412 GFLOP/s"
  Json data;         // for machines, base units: {"value":4.12e11,"unit":"FLOP/s"}; null repeats the text
  Tone tone = Tone::plain;
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
  std::vector<std::vector<Cell>> rows;  // one cell a column
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

using Block = std::variant<Text, Table, Verbatim, List>;

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
