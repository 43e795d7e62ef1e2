// The figure of one series of a history in what a command prints.
#pragma once

#include "harness/ab/ab.h"
#include "harness/figures/printed.h"
#include "harness/history/history.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace assay::history {

// Reads the first of some series whose case and metric a command prints; from then on only that one.
//  (none)  what has the name of the series' case, in its unit and direction ("CASE:METRIC" where the case has several
//          such metrics), or of its metric; Google Benchmark's figure of that case and metric; or "value"
//  lines   only what has the name of the case
//  NAME    the same if it is the name of the case or metric, else the figure NAME, as printed_figure() finds it
//  time    wall time, of a series in seconds
// A unit, a direction, a "case" and a "metric" that are printed must be the series'.
class SeriesFigure {
 public:
  // `wanted`: indices of tracked series of `history`, which must outlive this; not empty. Throws UsageError for a
  // metric that the history has as another one's.
  SeriesFigure(const History& history, std::vector<std::size_t> wanted, std::string metric);

  // Throws UsageError "A: ..." for output without it.
  ab::Figure read(const CommandOutput& output, char side);
  // The series that was read.
  std::size_t series() const { return wanted_.front(); }
  // What the reader of the figures should know.
  const std::set<std::string>& remarks() const { return remarks_; }

 private:
  std::vector<std::string> names_of(std::size_t series) const;
  bool is_named(std::size_t series) const;
  PrintedFigure find(const CommandOutput& output, const std::string& place);

  const History* history_;
  std::vector<std::size_t> wanted_;
  std::string metric_;
  std::set<std::string> remarks_;
};

}  // namespace assay::history
