// Scaling: efficiency of N ranks, cost of collectives, predictions for the next world sizes.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Sections "scaling" (efficiency, predictions, collectives; in the terminal unless it is long) and "scaling-details"
// (fits, residuals, ranks, what was left out and why). Empty if the runs have nothing on scaling.
std::vector<Section> scaling_sections(const RunSet& runs);

}  // namespace assay::report
