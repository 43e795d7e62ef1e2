// What other programs print or write as figures: one result, the results of a file, and what collects them.
#pragma once

#include "harness/json/fwd.h"
#include "harness/record/record.h"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay {

// One result of another tool: a figure, or why there is none. What a format does not say is empty.
struct ForeignFigure {
  std::string time;     // ISO 8601, UTC
  std::string machine;  // a host or a kind of machine
  std::string commit;
  std::map<std::string, std::string> facts;  // kept as labels of the run
  std::string name;                          // of the case
  std::string metric;
  std::string unit;  // base units, as in records
  Better better = Better::higher;
  std::vector<double> values;  // one, or a sample each, all finite; empty: the result has no figure
  Status status = Status::ok;  // as the tool has it, of the worst sample
  std::string reason;          // why it is not ok: the tool's message
  std::optional<Check> check;  // that the tool made: wrong elements, a return code
  bool comparable = true;
};

// What a file holds.
struct ForeignFile {
  std::vector<ForeignFigure> figures;
  std::size_t not_read = 0;    // lines, rows or entries that became no figure
  std::string first_not_read;  // "line 7: ..."; empty if there is none
};

// Joins results to figures: values of one case and metric at one time on one machine are its samples.
class FigureCollector {
 public:
  // The figure that the result went into, until the next call.
  ForeignFigure& add(const ForeignFigure& result);
  // The same with one value; one that is not finite is an error.
  ForeignFigure& add(ForeignFigure result, double value);
  // A result that says why it has no figure.
  void add_without(ForeignFigure result, Status status, std::string reason);
  // A part of the file that becomes no figure, and where it is.
  void not_read(const std::string& place, const std::string& what);
  ForeignFile take() { return std::move(file_); }

 private:
  ForeignFile file_;
  std::unordered_map<std::string, std::size_t> places_;
};

// JSON in which NaN and Infinity are null. Throws Error, and UsageError "FILE: not JSON:LINE:COLUMN: ...".
Json parse_printed_json(const std::string& text);
Json parse_foreign_json(const std::string& text, const std::string& file);
// An array at the pointer, which makes the file one of this tool's; throws UsageError without it.
const Json& need_list(const Json& json, const char* pointer, const std::string& file, const char* tool);

// "name value unit better", or "name failed|error|skipped reason", on each line, as a terminal shows it; units are kept
// as they are written. Throws UsageError "FILE: line N: ..." for any other line.
ForeignFile read_lines(const std::string& text, const std::string& file);
// Google Benchmark's JSON. Throws UsageError "FILE: ..." for any other text.
ForeignFile read_gbench(const std::string& text, const std::string& file);

// "higher" or "lower"; throws UsageError "PLACE: ..." for another word.
Better better_from(const std::string& word, const std::string& place);

}  // namespace assay
