// The samples behind the figures: distribution and time line of the cases that matter, numbers of all others.
#pragma once

#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Pictures of the key figures' cases (key_entries) with clock and power where they were recorded; one row for every
// other case: median, 5th and 95th percentile, count, disturbed.
std::vector<Section> sample_sections(const RunSet& runs);

}  // namespace assay::report
