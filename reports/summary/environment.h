// What the runs ran on, side by side where machines differ, and what about them spoils figures, with the mend.
#pragma once

#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

std::vector<Section> environment_sections(const RunSet& runs);

}  // namespace assay::report
