#include "harness/cli/configs.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

namespace assay::cli {

namespace fs = std::filesystem;

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
