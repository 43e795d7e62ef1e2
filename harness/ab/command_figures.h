// What the figures of a command are: its time, or what it prints.
#pragma once

#include "harness/ab/ab.h"
#include "harness/figures/foreign.h"
#include "harness/figures/printed.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::ab {

// The figures of a tool whose format is known, and its name; absent for any other output.
struct ToolFigures {
  std::string format;
  ForeignFile file;
};
using ToolReader = std::function<std::optional<ToolFigures>(const std::string& output, const std::string& place)>;

// Reads the figures of each run of both sides.
//  time    its wall time: one case, "time"
//  lines   its whole output is "name value unit better" on each line, as `assay import lines` reads it: a case per name
//  NAME    the figure of this name, as printed_figure() finds it: one case
//  (none)  lines if A's first output is nothing else; else what `tool` reads of it, a case per name, whose first metric
//          counts; otherwise, if no cases are named, time
class CommandFigures {
 public:
  // If cases are named (NAME, or NAME:METRIC), only they count, and each must be there. `better` is the direction of a
  // figure that states none.
  explicit CommandFigures(std::string metric, std::vector<std::string> cases = {}, std::optional<Better> better = {},
                          ToolReader tool = {});

  // Throws UsageError "A: ..." for output without the figures.
  std::vector<Figure> read(const CommandOutput& output, char side);
  // What --metric means; empty until A's first output was read.
  const std::string& metric() const { return metric_; }
  // What the reader of the figures should know.
  const std::set<std::string>& remarks() const { return remarks_; }

 private:
  std::vector<Figure> read_lines_of(const CommandOutput& output, char side) const;
  std::vector<Figure> read_tool(const CommandOutput& output, char side) const;
  std::vector<Figure> cases_of(const ForeignFile& file, const std::string& place) const;

  std::string metric_;
  bool of_tool_ = false;  // `metric_` is the format that `tool_` reads
  std::vector<std::string> cases_;
  std::optional<Better> better_;
  ToolReader tool_;
  std::set<std::string> remarks_;
};

}  // namespace assay::ab
