// A healthy machine as files, and faults of it: what --inject shows to the audit instead of this machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay::gate {

// Writes the files of the machine in `file` (configs/gate-faults.json), changed by the fault of that name (empty:
// none), below `root`, which exists. Throws UsageError for mistakes in the file, Error if it cannot write.
void write_machine(const std::filesystem::path& file, std::string_view fault, const std::filesystem::path& root);

}  // namespace assay::gate
