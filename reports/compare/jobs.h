// What changed inside of jobs that were watched, or whose traces were imported: parts of a step, kernels.
#pragma once

#include "reports/compare/comparison.h"

#include <vector>

namespace assay::report::comparison {

// "Where the steps changed", by part, and "What runs longer or shorter": the ten kernels (without a GPU, operators)
// whose time in a step changed most, and those that only one side has. Empty without such jobs on both sides.
std::vector<Section> job_sections(const Comparison& comparison);

}  // namespace assay::report::comparison
