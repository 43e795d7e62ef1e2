#include "harness/cli/configs.h"

#include "harness/core/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace assay::cli {

namespace fs = std::filesystem;

fs::path configs_dir() {
  std::error_code none;
  if (const char* named = std::getenv("ASSAY_CONFIGS"); named && *named) {
    if (!fs::is_directory(named, none)) throw UsageError(fmt::format("ASSAY_CONFIGS={}: not a folder", named));
    return named;
  }
  const fs::path binary = fs::read_symlink("/proc/self/exe", none);
  const fs::path installed = binary.parent_path().parent_path() / "share" / "assay" / "configs";
  if (fs::is_directory(installed, none)) return installed;
  const fs::path source = ASSAY_SOURCE_CONFIGS;
  return fs::is_directory(source, none) ? source : fs::path();
}

std::vector<ConfigFile> config_files(std::string_view folder) {
  std::vector<ConfigFile> files;
  std::error_code none;
  const fs::path dir = configs_dir() / folder;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, none)) {
    if (entry.path().extension() != ".json") continue;
    ConfigFile file{entry.path().stem().string(), {}, entry.path()};
    std::ifstream stream(entry.path());
    const auto json = nlohmann::json::parse(stream, nullptr, false, true);
    if (json.is_object() && json.contains("description") && json["description"].is_string())
      file.description = json["description"].get<std::string>();
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const ConfigFile& a, const ConfigFile& b) { return a.name < b.name; });
  return files;
}

}  // namespace assay::cli
