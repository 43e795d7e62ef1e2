// The one figure that --metric names in what a command prints.
#pragma once

#include "harness/record/metric.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The grammar of --metric NAME, for people, below the help of the verbs that have it.
extern const char* const metric_grammar;

struct CommandOutput {
  std::string_view text;
  bool whole = true;   // false: only the end of a text that was too long to keep
  double seconds = 0;  // that the command took
};

struct WantedFigure {
  std::vector<std::string> names;        // any of these; not empty
  std::optional<std::string> unit = {};  // figures that say another unit or direction are not meant
  std::optional<Better> better = {};
  bool exact = false;  // neither a name that ends in one of these nor the last line's "value" counts
};

struct PrintedFigure {
  std::string name;                 // as asked; of Google Benchmark the benchmark's
  double value = 0;                 // the median
  std::vector<double> values;       // all of this name
  std::optional<std::string> unit;  // where it is printed: base units, or as JSON and "name value unit better" have it
  std::optional<Better> better;     // where it is printed
  std::string case_name, metric;    // where JSON says "case" and "metric"; the metric of Google Benchmark
  std::string remark;               // what the reader of the figure should know; mostly empty
};

// Finds "NAME: 5 GB/s", "NAME=5", "NAME 5 s", "NAME 5 s lower", a member NAME of JSON, or gbench:NAME:METRIC anywhere
// in the output. If the last line is a JSON object with a number NAME, or else "value", that is the figure. A name that
// ends others counts only where it is itself none and ends the same one each time. Throws UsageError, which begins with
// `place`: there is no such name (and which are near), several, one without a number, or of several units.
PrintedFigure printed_figure(const CommandOutput& output, const WantedFigure& wanted, const std::string& place);
// The same, but absent if the output has no such name, or none with that unit and direction.
std::optional<PrintedFigure> find_figure(const CommandOutput& output, const WantedFigure& wanted,
                                         const std::string& place);

// The figure of --metric NAME, with its unit ("1" if none is printed) and the way it counts: as printed, as `better`
// says, or as its unit tells: times lower, rates higher. Also throws UsageError if these contradict each other, or none
// says.
PrintedFigure named_figure(const CommandOutput& output, const std::string& name, std::optional<Better> better,
                           const std::string& place);

}  // namespace assay
