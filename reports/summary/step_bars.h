// Where a training step's time goes.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// A stacked bar and a row per training case: waiting for data, forward, backward, exposed communication, optimizer, and
// what is left. Empty without training.
std::vector<Section> step_sections(const RunSet& runs);

}  // namespace assay::report
