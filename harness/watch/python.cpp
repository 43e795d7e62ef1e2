#include "harness/watch/python.h"

#include "harness/core/configs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>

namespace assay::watch {

namespace {

// A word such as "python3.11" or "/usr/bin/python".
bool is_python(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == name.npos;
}

}  // namespace

Variables variables_with_hook(const std::string& folder, const std::string& address, const std::string& traces) {
  Variables variables;
  for (char** each = environ; each && *each; ++each) {
    const std::string_view text = *each;
    const std::size_t equals = text.find('=');
    if (equals != text.npos && equals > 0) variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  variables.erase("ASSAY_WATCH_TRACES");  // of a watch around this one
  if (folder.empty() || address.empty()) return variables;
  if (!traces.empty()) variables["ASSAY_WATCH_TRACES"] = traces;
  const auto path = variables.find("PYTHONPATH");
  const bool set = path != variables.end() && !path->second.empty();
  variables["PYTHONPATH"] = set ? folder + ":" + path->second : folder;
  variables["ASSAY_WATCH"] = address;
  return variables;
}

std::string hook_folder() {
  const std::filesystem::path configs = configs_dir();
  if (configs.empty()) return {};
  std::error_code none;
  for (const std::filesystem::path& folder :
       {configs.parent_path() / "watch", configs.parent_path() / "harness" / "watch" / "hook"})
    if (std::filesystem::exists(folder / "sitecustomize.py", none)) return folder.string();
  return {};
}

std::string why_not_hooked(const std::vector<std::string>& words) {
  std::size_t at = 0;
  // env NAME=VALUE python ..., nice python ...
  while (at < words.size() && !is_python(words[at]) &&
         (words[at].ends_with("env") || words[at].ends_with("nice") || words[at].find('=') != std::string::npos))
    ++at;
  if (at >= words.size() || !is_python(words[at])) return {};
  for (++at; at < words.size() && words[at].size() > 1 && words[at][0] == '-' && words[at][1] != '-'; ++at) {
    if (const std::size_t found = words[at].find_first_of("SEIcmWX", 1); found != std::string::npos) {
      const char option = words[at][found];
      if (option == 'c' || option == 'm') return {};
      if (option == 'W' || option == 'X') {
        if (found + 1 == words[at].size()) ++at;
        continue;
      }
      return fmt::format("Python's option -{} skips the hook in it", option);
    }
  }
  return {};
}

}  // namespace assay::watch
