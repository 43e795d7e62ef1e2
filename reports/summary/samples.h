// The samples behind the figures that matter: distribution and time line.
#pragma once

#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Pictures and numbers of the key figures' cases, with clock and power where they were recorded; the numbers of all
// others stand with their records (method_sections).
std::vector<Section> sample_sections(const RunSet& runs);

}  // namespace assay::report
