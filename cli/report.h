// What `assay run` leaves behind: the report of its run.
#pragma once

#include "harness/record/run_dir.h"

namespace assay::cli {

// Writes report.html and report.md into the directory of a finished run, then prints one screen of it on stdout, or
// with `all` every table, and the page's path: in colour on a terminal, plain otherwise, within 100 columns.
void report_finished_run(RunData run, bool drill, bool all);

}  // namespace assay::cli
