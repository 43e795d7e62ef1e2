// Two shell commands as the sides of a comparison.
#pragma once

#include "harness/ab/ab.h"
#include "harness/figures/printed.h"
#include "harness/process/run.h"

#include <functional>
#include <string>
#include <vector>

namespace assay::ab {

// The figures of side 'A' or 'B' from a run of its command that succeeded. Throws UsageError "A: ..." if it has none.
using FigureReader = std::function<std::vector<Figure>(const CommandOutput& output, char side)>;
// Runs one program to its end, as Children::run().
using Runner = std::function<FinishedProcess(const ProcessRun& run)>;

struct Commands {
  std::string verb;  // that messages begin with: "ab"
  std::string a, b;
  FigureReader read;
};

// run() of two shell commands; a terminal shows which one runs. Throws UsageError if a first output lacks the figure;
// Error if a later one does or a command fails.
Result run_commands(const Commands& commands, const Options& options, const Runner& run_one);
// The same with Children, so it may be called once per process: a signal ends the commands, and nothing of them is
// left.
Result run_commands(const Commands& commands, const Options& options);

}  // namespace assay::ab
