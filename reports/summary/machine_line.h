// Where a run was measured, in words, from its run.json; absent members are skipped.
#pragma once

#include "harness/runs/run_set.h"

#include <cstddef>
#include <string>

namespace assay::report {

// "AMD Zen 4, 2 cores, 24 GB, no GPU · plan quick, 38 cases in 2 min 21 s · 1 finding (assay env)".
std::string machine_line(const RunSet& runs, std::size_t run_index);

}  // namespace assay::report
