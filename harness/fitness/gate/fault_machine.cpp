#include "harness/fitness/gate/fault_machine.h"

#include "harness/core/error.h"
#include "harness/core/plain_text.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <map>
#include <system_error>

namespace assay::gate {

namespace {

namespace fs = std::filesystem;

constexpr std::time_t uptime = 86400;

// In a text, "{boot}" is when the machine started, a day ago, "{past}" two days ago, "{now}" now; in Unix seconds.
std::string at_this_time(std::string text, std::time_t now) {
  const std::map<std::string, std::time_t> moments{
      {"{boot}", now - uptime}, {"{now}", now}, {"{past}", now - 2 * uptime}};
  for (const auto& [word, moment] : moments)
    for (auto at = text.find(word); at != text.npos; at = text.find(word))
      text.replace(at, word.size(), std::to_string(moment));
  return text;
}

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::strtol(hex.substr(i, 2).c_str(), nullptr, 16)));
  return bytes;
}

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  fs::remove_all(path);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(fmt::format("cannot write {}", path.string()));
}

// A text, null (neither file nor folder), {"link": target}, {"hex": bytes}, {"folder": true}, or any other JSON as
// such.
void add_file(const fs::path& root, const std::string& name, const Json& content, std::time_t now) {
  const fs::path path = root / name;
  if (content.is_null()) {
    fs::remove_all(path);
  } else if (content.is_string()) {
    write_file(path, at_this_time(content.get<std::string>(), now) + "\n");
  } else if (const std::string target = text_member(content, "/link"); !target.empty()) {
    fs::create_directories(path.parent_path());
    fs::remove_all(path);
    fs::create_symlink(target, path);
  } else if (const std::string hex = text_member(content, "/hex"); !hex.empty()) {
    write_file(path, bytes_of_hex(hex));
  } else if (content.contains("folder")) {
    fs::create_directories(path);
  } else {
    write_file(path, dump_document(content));
  }
}

}  // namespace

void write_machine(const fs::path& file, std::string_view fault, const fs::path& root) {
  const Json json = read_json(file);
  const std::time_t now = std::time(nullptr);
  try {
    Json files = json.at("machine");
    if (!fault.empty()) {
      const Json& changes = json.at("faults").at(std::string(fault));
      for (const auto& [name, content] : changes.items())
        files[name] = name == "nvml.json" && content.is_array() ? files[name].patch(content) : content;
    }
    for (const auto& [name, content] : files.items()) add_file(root, name, content, now);
  } catch (const Json::exception& error) {
    throw UsageError(fmt::format("{}: {}", file.string(), reason_of(error)));
  } catch (const fs::filesystem_error& error) {
    throw Error(reason_of(error));
  }
}

}  // namespace assay::gate
