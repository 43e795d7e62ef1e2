#include "workloads/resnet/config.h"

#include "harness/json/json.h"

#include <fmt/format.h>

namespace assay::resnet {

namespace {

void read_stages(const Cursor& cursor, Config& config) {
  const auto member = cursor.need("stages");
  if (!member) return;
  if (!member->json().is_array()) {
    member->error("must be an array: the blocks of each stage");
    return;
  }
  for (const Cursor& element : member->elements())
    if (const auto blocks = element.integer(1, 1000)) config.stages.push_back(*blocks);
  if (member->json().empty() || member->json().size() > 8) member->error("must name 1 to 8 stages");
}

void check_shapes(const Cursor& cursor, const Config& config) {
  const auto place = [&](const char* name) { return cursor.find(name).value_or(cursor); };
  if (config.width % config.groups != 0)
    place("groups").error(fmt::format("{} groups do not divide the width {}", config.groups, config.width));
  if (config.groups > 1 && config.block == BlockKind::basic)
    place("groups").error("allowed only if block is \"bottleneck\"");
  if (config.image < config.reduction())
    place("image").error(fmt::format("{} pixels are fewer than the reduction by {}", config.image, config.reduction()));
}

}  // namespace

Config read_config(const Json& json, const std::string& source, const std::string& name) {
  Problems problems(source);
  const Cursor cursor(json, problems);
  Config config;
  config.name = name;
  if (!cursor.object()) problems.raise();
  cursor.schema(1);
  static const std::vector<std::string> names = {"schema", "family",          "description", "source",  "block",
                                                 "stages", "width",           "groups",      "classes", "image",
                                                 "stem",   "zero_last_scale", "parameters"};
  cursor.only(names);
  static const std::vector<std::string> families = {"resnet"}, blocks = {"basic", "bottleneck"},
                                        stems = {"large", "small"};
  if (const auto member = cursor.need("family")) member->choice(families);
  if (const auto member = cursor.need("block"))
    if (const auto value = member->choice(blocks))
      config.block = *value == "basic" ? BlockKind::basic : BlockKind::bottleneck;
  read_stages(cursor, config);
  const auto size = [&](const char* member_name, std::int64_t& value, std::int64_t max) {
    if (const auto member = cursor.find(member_name))
      if (const auto read = member->integer(1, max)) value = *read;
  };
  size("width", config.width, 1 << 16);
  size("groups", config.groups, 1 << 16);
  size("classes", config.classes, 1 << 24);
  size("image", config.image, 1 << 14);
  if (const auto member = cursor.find("stem"))
    if (const auto value = member->choice(stems)) config.small_stem = *value == "small";
  if (const auto member = cursor.find("zero_last_scale")) config.zero_last_scale = member->flag().value_or(false);
  if (problems.empty()) check_shapes(cursor, config);
  problems.raise();
  return config;
}

}  // namespace assay::resnet
