// Tables of cases: figure, interval, fraction of peak, reference, verdict.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Micro-benchmarks: one table per suite and machine. Several runs of a machine share a row: the newest figure with the
// range of all.
std::vector<Section> suite_sections(const RunSet& runs);
// Training, in the same form.
std::vector<Section> workload_sections(const RunSet& runs);
// Collectives as nccl-tests prints them; in the terminal only on request.
std::vector<Section> collective_sections(const RunSet& runs, bool in_terminal);

}  // namespace assay::report
