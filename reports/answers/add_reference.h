// Keeping a run as a reference.
#pragma once

#include <filesystem>
#include <string>

namespace assay::report {

// Copies a run to configs/reference/NAME without names of hosts and users' paths, and returns the new directory. Throws
// UsageError if the name is taken or unfit, or the run is no reference: unfinished, nothing comparable, a case that
// failed or broke, or disturbed by something else on the machine.
std::filesystem::path add_reference(const std::filesystem::path& run, const std::string& name);

}  // namespace assay::report
