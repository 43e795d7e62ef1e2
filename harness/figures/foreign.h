// What other programs print or write as figures: one result, the results of a file, and what collects them.
#pragma once

#include "harness/figures/foreign_run.h"
#include "harness/json/fwd.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace assay {

// Collects the results of a file, run by run.
class FigureCollector {
 public:
  // What follows was measured there and then. Results before the first call have an empty context.
  void measured(const ForeignContext& about);
  void add(ForeignFigure result);
  // With one value; one that is not finite is an error of the result.
  void add(ForeignFigure result, double value);
  // A result that says why it has no figure.
  void add_without(ForeignFigure result, Status status, std::string reason);
  // A part of the file that becomes no figure, and where it is.
  void not_read(const std::string& place, const std::string& what);
  // What the user should know of the file; each text counts once.
  void remark(const std::string& text);
  // A time that the file has, in UTC; empty if `written` is. Throws UsageError "FILE: line N: ..." if it cannot be
  // read: the line is where `text`, the whole file, has it.
  std::string time(const std::string& written, const std::string& text, const std::string& file);
  // The same where the place is known.
  std::string time(const std::string& written, const std::string& place);
  // Whether there is no result yet.
  bool empty() const;
  ForeignFile take() { return std::move(file_); }

 private:
  ForeignRun& run();

  ForeignFile file_;
  std::unordered_map<std::string, std::size_t> places_;  // of runs, by context
  std::optional<std::size_t> current_;
  std::pair<std::string, std::string> last_time_;  // as it is written, in UTC
};

// JSON in which NaN and Infinity are null. Throws Error, and UsageError "FILE: not JSON:LINE:COLUMN: ...".
Json parse_printed_json(const std::string& text);
Json parse_foreign_json(const std::string& text, const std::string& file);
// An array at the pointer, which makes the file one of this tool's; throws UsageError without it.
const Json& need_list(const Json& json, const char* pointer, const std::string& file, const char* tool);

// "name value unit better", or "name failed|error|skipped reason", on each line, as a terminal shows it; units are kept
// as they are written. Throws UsageError "FILE: line N: ..." for any other line.
ForeignFile read_lines(const std::string& text, const std::string& file);
// Google Benchmark's JSON; `commit_key` is the member of its context that names the commit, besides the usual ones.
// Throws UsageError "FILE: ..." for any other text.
ForeignFile read_gbench(const std::string& text, const std::string& file, const std::string& commit_key = {});

// "higher" or "lower"; throws UsageError "PLACE: ..." for another word.
Better better_from(const std::string& word, const std::string& place);

}  // namespace assay
