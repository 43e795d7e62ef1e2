// Configuration files with their descriptions.
#pragma once

#include "harness/core/configs.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ConfigFile {
  std::string name;         // without .json
  std::string description;  // the file's own; empty if it has none or cannot be read
  std::filesystem::path path;

  static void members(auto& self, auto& io) {
    io("name", self.name), io.sparse("description", self.description), io("path", self.path.string());
  }
};

// The JSON files of configs/`folder`, by name; none if the folder is absent.
std::vector<ConfigFile> config_files(std::string_view folder);

}  // namespace assay
