// Two commands of the user's, measured in turn.
#pragma once

#include "harness/ab/ab.h"
#include "harness/figures/printed.h"

#include <functional>
#include <string>
#include <vector>

namespace assay::cli {

// The figures of side 'A' or 'B' from a run of its command that succeeded. Throws UsageError "A: ..." if it has none.
using FigureReader = std::function<std::vector<ab::Figure>(const CommandOutput& output, char side)>;

// ab::run() of two shell commands, which may be called once per process (see Children). Throws UsageError if a
// first output lacks the figure; Error if a later one does or a command fails. Messages begin with `verb`.
ab::Result compare_commands(const std::string& verb, const std::string& a, const std::string& b,
                            const FigureReader& read, const ab::Options& options);

}  // namespace assay::cli
