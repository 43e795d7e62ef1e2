#include "harness/fitness/accept/level.h"

#include "harness/core/configs.h"
#include "harness/core/error.h"
#include "harness/core/files.h"
#include "harness/core/sha256.h"
#include "harness/core/units.h"
#include "harness/fitness/cluster/cluster.h"
#include "harness/json/json.h"

#include <fmt/format.h>

namespace assay::accept {

namespace fs = std::filesystem;

namespace {

constexpr int max_cpu_ranks = 1024;
constexpr std::uintmax_t max_file_bytes = std::uintmax_t{64} << 20;

// A file beside the level's, else what `find_config` finds by that name.
std::string beside(const fs::path& level, const std::string& folder, const std::string& what, const std::string& word) {
  std::error_code none;
  for (const char* end : {"", ".json"})
    if (const fs::path file = level.parent_path() / (word + end); fs::is_regular_file(file, none)) return file.string();
  return find_config(folder, what, word).string();
}

// Absent if the level has plans for other devices only.
std::optional<std::vector<std::string>> read_plans(const Cursor& at, const fs::path& level, DeviceKind device) {
  static const std::vector<std::string> devices = {"cpu", "cuda"};
  if (at.json().is_object()) {
    at.only(devices);
    const auto own = at.find(name_of(device));
    return own ? read_plans(*own, level, device) : std::nullopt;
  }
  std::vector<std::string> plans;
  for (const Cursor& each : at.elements())
    if (const auto word = each.text()) {
      try {
        plans.push_back(beside(level, "plans", "plan", *word));
      } catch (const UsageError& error) {
        each.error(error.what());
      }
    }
  return plans;
}

}  // namespace

Level read_level(const std::string& word, DeviceKind device) {
  static const std::vector<std::string> stages = {"host", "pairs", "collectives", "training"};
  static const std::vector<std::string> checks(std::begin(fitness::accept_checks), std::end(fitness::accept_checks));
  std::error_code none;
  Level level;
  level.file = fs::is_regular_file(word, none) ? fs::path(word) : find_config("accept", "level", word);
  level.file = fs::absolute(level.file).lexically_normal();
  level.name = level.file.stem().string();
  return read_strictly(level.file, 1,
                       {"schema", "description", "host", "pairs", "collectives", "training", "fleet", "pair_share",
                        "not_run", "required", "ranks_per_host"},
                       [&](const Cursor& root) {
                         level.description = root.text_of("description");
                         for (const std::string& stage : stages)
                           if (const auto at = root.find(stage)) {
                             const auto plans = read_plans(*at, level.file, device);
                             if (!plans || !plans->empty()) level.required.insert(stage);
                             level.plans[stage] = plans.value_or(std::vector<std::string>());
                           }
                         if (const auto at = root.find("fleet"))
                           if (const auto name = at->text()) {
                             try {
                               level.fleet = beside(level.file, "floors", "floors file", *name);
                             } catch (const UsageError& error) {
                               at->error(error.what());
                             }
                           }
                         if (const auto at = root.find("pair_share")) {
                           level.pair_share = at->quantity(parse_fraction, 0, 1).value_or(1);
                           if (level.pair_share == 0) at->error("must be above 0: no link would be slow");
                         }
                         if (const auto at = root.find("ranks_per_host")) {
                           at->only({"cpu"});
                           if (const auto cpu = at->find("cpu"))
                             level.cpu_ranks = static_cast<int>(cpu->integer(1, max_cpu_ranks).value_or(1));
                         }
                         if (const auto at = root.find("not_run")) {
                           at->only(checks);
                           for (const auto& [name, why] : at->members()) {
                             level.not_run[name] = why.text().value_or("");
                             level.required.erase(name);
                           }
                         }
                         if (const auto at = root.find("required")) {
                           level.required.clear();
                           for (const Cursor& each : at->elements())
                             level.required.insert(each.choice(checks).value_or(""));
                         }
                         return level;
                       });
}

std::string hash_of(const Level& level) {
  std::string all;
  const auto add = [&](const fs::path& file) { all += sha256_hex(read_whole(file, max_file_bytes)); };
  add(level.file);
  for (const auto& [stage, plans] : level.plans)
    for (const std::string& plan : plans) add(plan);
  if (!level.fleet.empty()) add(level.fleet);
  return sha256_hex(all);
}

}  // namespace assay::accept
