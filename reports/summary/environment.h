// What the runs ran on, machines side by side, and what about them spoils figures, with a fix for each.
#pragma once

#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

std::vector<Section> environment_sections(const RunSet& runs);

}  // namespace assay::report
