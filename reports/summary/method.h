// "How was this measured?": protocols in words, and one row per record, which figures link to, with all its figures and
// sample statistics. "Is this normal?": the peaks and references that figures are compared with, and their sources.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Rows of records have the anchor Entry::anchor(). Beyond 2,000 records only the newest of each case is shown.
std::vector<Section> method_sections(const RunSet& runs);
std::vector<Section> normal_sections(const RunSet& runs);

}  // namespace assay::report
