// The samples behind the key figures: distribution and timeline.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Pictures and statistics of the key figures' cases, with clock and power if recorded; the statistics of all other
// cases are with their records (method_sections).
std::vector<Section> sample_sections(const RunSet& runs);

}  // namespace assay::report
