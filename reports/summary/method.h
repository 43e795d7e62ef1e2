// "How was this measured?": protocols in words, and one row a record that figures link to, with all its figures and
// samples in numbers. "Is this normal?": the peaks and references that figures are held against, with their sources.
#pragma once

#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Rows of records are anchored at Entry::anchor(). Records beyond 2,000: the newest of each case.
std::vector<Section> method_sections(const RunSet& runs);
std::vector<Section> normal_sections(const RunSet& runs);

}  // namespace assay::report
