// The machines of the runs side by side, and the findings that affect figures, each with a fix.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

std::vector<Section> environment_sections(const RunSet& runs);

}  // namespace assay::report
