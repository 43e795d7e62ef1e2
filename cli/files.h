// Shared by subcommands that read runs: reading the runs, writing the requested files, the terminal.
#pragma once

#include "harness/record/run_dir.h"
#include "reports/render/render.h"

#include <string>
#include <vector>

namespace assay::cli {

// Each directory once, so that a path given twice does not count twice. Throws UsageError as read_run does.
std::vector<RunData> read_runs(const std::vector<std::string>& dirs);

// A file that the user named. Throws UsageError, which names the subcommand, if it cannot be written.
void write_named_file(const char* subcommand, const std::string& path, const std::string& text);

// To stdout: in colour if that is a terminal and NO_COLOR is not set (https://no-color.org); at most 100 columns.
void print(const report::Document& document);

}  // namespace assay::cli
