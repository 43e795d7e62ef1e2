// What subcommands that read runs share: the runs they are given, the files they are asked for, the terminal's style.
#pragma once

#include "harness/record/run_dir.h"
#include "reports/render/render.h"

#include <string>
#include <vector>

namespace assay::cli {

// Each directory once, so that a path given twice does not count twice. Throws UsageError as read_run does.
std::vector<RunData> read_runs(const std::vector<std::string>& dirs);

// A file that the user named. Throws UsageError, which names the subcommand, when it cannot be written.
void write_named_file(const char* subcommand, const std::string& path, const std::string& text);

// Colour where stdout is a terminal and nobody objects (https://no-color.org); at most 100 columns.
report::TerminalStyle terminal_style();

}  // namespace assay::cli
