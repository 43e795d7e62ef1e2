// The report of one or several runs: every case with its figure, interval, share of peak and verdict.
#pragma once

#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <string>

namespace assay::report {

struct SummaryOptions {
  std::string footer;       // appended to the verdict: where the report file lies
  bool nccl_table = false;  // collectives in nccl-tests' form, in the terminal too
};

// One Document over all runs.
Document summarize_runs(const RunSet& runs, const SummaryOptions& options);

}  // namespace assay::report
