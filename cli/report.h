// What `assay run` leaves behind: the report of its run.
#pragma once

#include <filesystem>

namespace assay::cli {

// Writes report.html and report.md into a finished run's directory, then prints the summary on stdout, with the page's
// path: in colour on a terminal, plain otherwise, within 100 columns.
void report_finished_run(const std::filesystem::path& dir, bool drill);

}  // namespace assay::cli
