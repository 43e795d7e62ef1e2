#include "harness/json/configs.h"

#include "harness/core/error.h"
#include "harness/json/json.h"

namespace assay {

std::vector<ConfigFile> config_files(std::string_view folder) {
  std::vector<ConfigFile> files;
  for (const std::string& name : config_names(folder)) {
    ConfigFile file{name, {}, configs_dir() / folder / (name + ".json")};
    try {
      file.description = text_member(read_json(file.path), "/description");
    } catch (const UsageError&) {  // whoever uses it says what is wrong
    }
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace assay
