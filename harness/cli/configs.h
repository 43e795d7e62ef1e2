// The folder of configuration files: plans, models, hardware.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

// $ASSAY_CONFIGS; else share/assay/configs beside the installed binary; else the source tree's.
// Throws UsageError when $ASSAY_CONFIGS is not a folder; an empty path when there is none at all.
std::filesystem::path configs_dir();

struct ConfigFile {
  std::string name;         // as it is asked for: without .json
  std::string description;  // the file's own; empty when it has none or cannot be read
  std::filesystem::path path;
};

// The JSON files of configs/`folder`, by name; none when the folder is absent.
std::vector<ConfigFile> config_files(std::string_view folder);

}  // namespace assay::cli
