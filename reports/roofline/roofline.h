// Rooflines (Williams, Waterman, Patterson 2009): the rate reached over arithmetic intensity, under the roofs measured
// on the same machine and those of its hardware sheet; and the MFU of training relative to the best GEMM of the same
// run.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// A figure and a table for each machine, device kind and dtype; a table of MFU. Empty if there is nothing to draw.
// Roofs come from the newest run of a machine that measured them.
std::vector<Section> roofline_sections(const RunSet& runs);

}  // namespace assay::report
