// What the figures of a command are: its time, or what it prints.
#pragma once

#include "harness/ab/ab.h"
#include "harness/figures/printed.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::ab {

// Reads the figures of each run of both sides.
//  time    its wall time: one case, "time"
//  lines   its whole output is "name value unit better" on each line, as `assay import lines` reads it: a case per name
//  NAME    the figure of this name, as printed_figure() finds it: one case
//  (none)  lines if A's first output is nothing else or cases are named, otherwise time
class CommandFigures {
 public:
  // If cases are named, only their lines count, and each must be there. `better` is the direction of a figure that
  // states none.
  explicit CommandFigures(std::string metric, std::vector<std::string> cases = {}, std::optional<Better> better = {});

  // Throws UsageError "A: ..." for output without the figures.
  std::vector<Figure> read(const CommandOutput& output, char side);
  // What --metric means; empty until A's first output was read.
  const std::string& metric() const { return metric_; }
  // What the reader of the figures should know.
  const std::set<std::string>& remarks() const { return remarks_; }

 private:
  std::vector<Figure> read_lines_of(const CommandOutput& output, char side) const;

  std::string metric_;
  std::vector<std::string> cases_;
  std::optional<Better> better_;
  std::set<std::string> remarks_;
};

}  // namespace assay::ab
