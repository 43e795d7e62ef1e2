// The report of one or several runs: every case with its figure, interval, share of peak and verdict.
#pragma once

#include "harness/record/run_dir.h"
#include "reports/model/document.h"

#include <string>
#include <vector>

namespace assay::report {

struct SummaryOptions {
  std::string footer;       // appended to the verdict: where the report file lies
  bool nccl_table = false;  // collectives in nccl-tests' form, in the terminal too
};

// One Document over all runs; a section a run, problems of reading named at the end.
Document summarize_runs(const std::vector<RunData>& runs, const SummaryOptions& options);

}  // namespace assay::report
