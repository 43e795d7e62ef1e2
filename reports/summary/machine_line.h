// What a run was measured on, in words, from its run.json; members that are absent are left out.
#pragma once

#include "harness/record/run_dir.h"

#include <string>
#include <vector>

namespace assay::report {

// "AMD Zen 4, 2 cores, 24 GB, no GPU · plan quick, 38 cases in 2 min 21 s · 1 finding (assay env)".
std::string machine_line(const RunData& run);
// A line a fact: machine, system, versions, command line, labels.
std::vector<std::string> environment_lines(const RunData& run);

}  // namespace assay::report
