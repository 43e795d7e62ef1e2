// What `assay report` prints, also printed at the end of `assay run`.
#pragma once

#include "reports/summary/summary.h"

#include <filesystem>

namespace assay::cli {

// Prints the summary on stdout: in colour on a terminal, plain otherwise, within 100 columns.
void print_summary(const report::RunSet& runs, const report::SummaryOptions& options);
// Writes report.md into a finished run's directory, then prints the summary with its path.
void report_finished_run(const std::filesystem::path& dir);

}  // namespace assay::cli
