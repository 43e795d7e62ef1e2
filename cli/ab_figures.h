// The figures of a command for `assay ab`: its time, or what it prints.
#pragma once

#include "harness/ab/ab.h"
#include "harness/json/fwd.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::cli {

// What a command's figures are.
//  time    its wall time: one case, "time"
//  lines   its whole output is "name value unit better" on each line, as `assay import lines` reads it: a case per name
//  NAME    the last line of its output is a JSON object with a number NAME, or else "value", and with "better":
//          "higher" or "lower"; or its output is lines, and this is one of their names
// Throws UsageError "A: ..." for output without them.
std::vector<ab::Figure> figures_of(const std::string& metric, const std::string& output, double seconds, char side);

// What --metric means if it is not given: "lines" if the output is nothing else, otherwise "time".
std::string metric_from(const std::string& output);

// The parts of figures_of(): the figures of output that is lines; the last line if it is a JSON object, else null; the
// figure of such an object. Throws UsageError, which begins with `place`.
std::optional<std::vector<ab::Figure>> lines_if_any(const std::string& output);
Json last_object(const std::string& output);
ab::Figure figure_in(const Json& line, const std::string& metric, const std::string& place);

}  // namespace assay::cli
