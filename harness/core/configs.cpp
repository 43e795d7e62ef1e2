#include "harness/core/configs.h"

#include "harness/core/error.h"
#include "harness/core/nearest.h"
#include "harness/core/program.h"
#include "harness/core/text.h"

#include <algorithm>
#include <cstdlib>

namespace assay {

namespace fs = std::filesystem;

fs::path configs_dir() {
  std::error_code none;
  if (const char* named = std::getenv("ASSAY_CONFIGS"); named && *named) {
    if (!fs::is_directory(named, none)) throw UsageError(fmt::format("ASSAY_CONFIGS={}: not a folder", named));
    return named;
  }
  const fs::path installed = program_file().parent_path().parent_path() / "share" / "assay" / "configs";
  if (fs::is_directory(installed, none)) return installed;
  const fs::path built = program_file().parent_path() / "configs";  // a link in a build folder
  return fs::is_directory(built, none) ? fs::canonical(built, none) : fs::path();
}

std::vector<fs::path> json_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, absent))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files, [](const fs::path& a, const fs::path& b) { return a.stem() < b.stem(); });
  return files;
}

std::vector<std::string> config_names(std::string_view folder) {
  std::vector<std::string> names;
  for (const fs::path& file : json_files(configs_dir() / folder)) names.push_back(file.stem().string());
  return names;
}

bool is_config_path(std::string_view word) {
  return word.find('/') != std::string_view::npos || word.ends_with(".json");
}

fs::path find_config(std::string_view folder, std::string_view what, const std::string& word) {
  if (is_config_path(word)) {
    std::error_code none;
    if (!fs::exists(word, none)) throw UsageError(fmt::format("{} {}: no such file", what, in_quotes(word)));
    return word;
  }
  const std::vector<std::string> names = config_names(folder);
  if (std::ranges::find(names, word) == names.end())
    throw UsageError(fmt::format("unknown {} {}{}", what, in_quotes(word), suggestion(word, names)));
  return configs_dir() / folder / (word + ".json");
}

}  // namespace assay
