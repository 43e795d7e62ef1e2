// Which paths through hardware a record's figures took, and which of these a reference run has taken before. The others
// have only been tested on an emulation: a label says so until configs/reference holds a run on such hardware.
#pragma once

#include "harness/record/record.h"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace assay {

// Its value lists the paths.
inline constexpr const char* unvalidated_label = "not yet validated on hardware";

// The GPUs' models as the driver names them, "several GPUs", "NVLink", "NVLS" and "InfiniBand", as far as the record
// shows that it used them. Empty for a record of CPUs or without figures.
std::vector<std::string> hardware_paths(const Record& record);

// The paths of all comparable records with status ok in the run directories in `folder`; none if it is absent. Throws
// UsageError if a run cannot be read.
std::set<std::string> validated_paths(const std::filesystem::path& folder);

// Labels a record with those of its paths that are not validated.
void label_unvalidated(Record& record, const std::set<std::string>& validated);

// Removes from a record's label the paths that are validated by now, and the label if no path is left.
void lift_label(Record& record, const std::set<std::string>& validated);

}  // namespace assay
