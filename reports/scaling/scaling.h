// Scaling efficiency: what N ranks are worth, what the collectives cost, what the next world sizes would give.
#pragma once

#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Sections "scaling" (efficiency, predictions, collectives; in the terminal unless it is long) and "scaling-details"
// (fits, residuals, ranks, what was kept apart and why). Empty when nothing in the runs scales.
std::vector<Section> scaling_sections(const RunSet& runs);

}  // namespace assay::report
