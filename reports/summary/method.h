// "How was this measured?": protocols in words, and one row a record that figures link to; every metric with its peak
// and reference and where those come from ("is this normal?").
#pragma once

#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Rows are anchored at Entry::anchor().
std::vector<Section> method_sections(const RunSet& runs);
// Every metric of every case.
std::vector<Section> metric_sections(const RunSet& runs);

}  // namespace assay::report
