// Two commands of the user's, measured in turn.
#pragma once

#include "harness/ab/ab.h"

#include <string>

namespace assay::cli {

// ab::run() of two shell commands, which may be called once per process (see ShellCommands). `metric` is as in
// figures_of(); an empty one becomes what A's first output is, or stays so if none came. Throws UsageError if a first
// output lacks the figure; Error if a later one does or a command fails. Messages begin with `verb`.
ab::Result compare_commands(const std::string& verb, const std::string& a, const std::string& b, std::string& metric,
                            const ab::Options& options);

}  // namespace assay::cli
