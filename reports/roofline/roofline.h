// Rooflines (Williams, Waterman, Patterson 2009): what was reached over arithmetic intensity, under the roofs that the
// same machine measured and that its sheet gives; and the MFU of training against the best GEMM of the same run.
#pragma once

#include "reports/data/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// A figure and a table for each machine, device kind, world size and dtype; a table of MFU. Empty when there is
// nothing to draw. Roofs stand on the newest run of a machine that measured them.
std::vector<Section> roofline_sections(const RunSet& runs);

}  // namespace assay::report
