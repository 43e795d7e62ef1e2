// The readers of import_formats(), and what they collect results with.
#pragma once

#include "harness/json/fwd.h"
#include "reports/exchange/import.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace assay::report {

ForeignFile read_gbench(const std::string& text, const std::string& file);
ForeignFile read_pytest_benchmark(const std::string& text, const std::string& file);
ForeignFile read_nccl_tests(const std::string& text, const std::string& file);
ForeignFile read_superbench(const std::string& text, const std::string& file);
ForeignFile read_csv(const std::string& text, const std::string& file);
ForeignFile read_lines(const std::string& text, const std::string& file);

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

// JSON in which NaN and Infinity are null. Throws UsageError "FILE: not JSON:LINE:COLUMN: ...".
Json parse_foreign_json(const std::string& text, const std::string& file);
// An array at the pointer, which makes the file one of this tool's; throws UsageError without it.
const Json& need_list(const Json& json, const char* pointer, const std::string& file, const char* tool);

}  // namespace assay::report
