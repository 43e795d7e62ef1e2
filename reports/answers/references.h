// Reference runs: run directories in configs/reference, without host names.
#pragma once

#include "harness/json/fwd.h"
#include "reports/data/run_set.h"

#include <filesystem>
#include <memory>
#include <string>

namespace assay::report {

// Those shipped or added; empty if there are none. Throws UsageError if one cannot be read.
std::shared_ptr<const RunSet> shipped_references();

// Copies a run to configs/reference/NAME without names of hosts and users' paths, and returns the new directory. Throws
// UsageError if the name is taken or unfit, or the run is no reference: unfinished, nothing comparable, a case that
// failed or broke, or disturbed by something else on the machine.
std::filesystem::path add_reference(const std::filesystem::path& run, const std::string& name);

}  // namespace assay::report
