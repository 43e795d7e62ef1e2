#include "cli/configs.h"

#include <nlohmann/json.hpp>

#include <fstream>

namespace assay::cli {

std::vector<ConfigFile> config_files(std::string_view folder) {
  std::vector<ConfigFile> files;
  for (const std::string& name : config_names(folder)) {
    ConfigFile file{name, {}, configs_dir() / folder / (name + ".json")};
    std::ifstream stream(file.path);
    const auto json = nlohmann::json::parse(stream, nullptr, false, true);
    if (json.is_object() && json.contains("description") && json["description"].is_string())
      file.description = json["description"].get<std::string>();
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace assay::cli
