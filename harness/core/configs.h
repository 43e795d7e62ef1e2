// Finds configuration files: plans, models, recipes, hardware sheets.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// $ASSAY_CONFIGS, else share/assay/configs next to the installed binary, else the source tree's.
// Throws UsageError if $ASSAY_CONFIGS is not a folder; returns an empty path if there is none at all.
std::filesystem::path configs_dir();

// The JSON files of a folder, sorted by name; none if it is absent.
std::vector<std::filesystem::path> json_files(const std::filesystem::path& folder);

// Names of the JSON files in configs/`folder`, sorted, without .json; none if the folder is absent.
std::vector<std::string> config_names(std::string_view folder);

// Whether `word` is a path (contains a / or ends in .json) rather than the name of a shipped file.
bool is_config_path(std::string_view word);

// The file that `word` refers to: one of configs/`folder` by name, or any by path. Throws UsageError suggesting the
// nearest names if there is none; `what` is the kind of file for that message ("model").
std::filesystem::path find_config(std::string_view folder, std::string_view what, const std::string& word);

}  // namespace assay
