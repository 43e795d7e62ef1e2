// The figure of one series of a history in what a command prints.
#pragma once

#include "cli/shell_command.h"
#include "harness/ab/ab.h"
#include "reports/history/history.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace assay::cli {

// Reads the first of some series whose case and metric a command prints; from then on only that one.
//  lines   "name value unit better" on each line: the one named as the series' case, with its unit and direction. Where
//          the case has several such metrics, "CASE:METRIC" names it
//  NAME    the last line is a JSON object with a number NAME, or else "value", and the direction of the series, and its
//          unit, "case" and "metric" if they are given
//  time    wall time, of a series in seconds
// Without a metric, `lines` if the output is nothing else, otherwise the number named as the series' metric.
class SeriesFigure {
 public:
  // `wanted`: indices of tracked series of `history`, which must outlive this; not empty. Throws UsageError for a
  // metric that the history has as another one's.
  SeriesFigure(const history::History& history, std::vector<std::size_t> wanted, std::string metric);

  // Throws UsageError "A: ..." for output without it.
  std::vector<ab::Figure> read(const FinishedProcess& done, char side);
  // The series that was read.
  std::size_t series() const { return wanted_.front(); }

 private:
  std::vector<std::string> names_of(std::size_t series) const;
  std::optional<ab::Figure> line_of(std::size_t series, const std::vector<ab::Figure>& lines) const;

  const history::History& history_;
  std::vector<std::size_t> wanted_;
  std::string metric_;
};

}  // namespace assay::cli
