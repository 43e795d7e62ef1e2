// Where configuration files are: plans, models, recipes, hardware sheets.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// $ASSAY_CONFIGS; else share/assay/configs beside the installed binary; else the source tree's.
// Throws UsageError when $ASSAY_CONFIGS is not a folder; an empty path when there is none at all.
std::filesystem::path configs_dir();

// Names of the JSON files of configs/`folder`, sorted, without .json; none when the folder is absent.
std::vector<std::string> config_names(std::string_view folder);

// Whether `word` is a path (it holds a / or ends in .json) and not the name of a shipped file.
bool is_config_path(std::string_view word);

// The file that `word` means: one of configs/`folder` by its name, or any by its path. Throws UsageError with the
// nearest names when there is none; `what` says what it would be ("model").
std::filesystem::path find_config(std::string_view folder, std::string_view what, const std::string& word);

}  // namespace assay
