#include "harness/plan/listing.h"

#include "harness/json/members.h"

#include <fmt/format.h>

namespace assay {

constexpr auto words(ParamType) {
  return std::to_array<std::string_view>({"integer", "bytes", "seconds", "flag", "choice", "count", "text"});
}

namespace {

Json json_of_values(const std::vector<ParamValue>& values) {
  Json json = Json::array();
  for (const ParamValue& value : values) json.push_back(to_json(value));
  return json;
}

std::vector<std::string_view> names_of(const std::vector<DeviceKind>& devices) {
  std::vector<std::string_view> names;
  for (const DeviceKind kind : devices) names.push_back(name_of(kind));
  return names;
}

Json json_of_spec(const ParamSpec& spec) {
  std::map<std::string, std::string_view> only_on;
  for (const auto& [value, kind] : spec.only_on) only_on[value] = name_of(kind);
  MemberWriter io;
  io("name", spec.name), io("type", word_of(spec.type)), io("defaults", json_of_values(spec.defaults));
  io.sparse("cuda_defaults", json_of_values(spec.cuda_defaults)), io.sparse("only_on", only_on);
  io.sparse("allowed", spec.allowed), io.sparse("sweep", spec.sweep);
  io.sparse("minimum", spec.minimum), io.sparse("maximum", spec.maximum);
  io.sparse("devices", names_of(spec.devices)), io("help", spec.help);
  return io.take();
}

}  // namespace

Json families_json(std::span<const Family> families) {
  Json list = Json::array();
  for (const Family& family : families) {
    Json json = {{"name", family.name},
                 {"summary", family.summary},
                 {"workload", family.workload},
                 {"devices", names_of(family.devices)},
                 {"params", Json::array()}};
    for (const ParamSpec& spec : family.params) json["params"].push_back(json_of_spec(spec));
    list.push_back(std::move(json));
  }
  return list;
}

std::string families_text(std::span<const Family> families) {
  std::string text = "families\n";
  for (const Family& family : families) {
    text += fmt::format("  {:<12} {}\n", family.name, family.summary);
    for (const ParamSpec& spec : family.params) {
      std::vector<std::string> defaults;
      for (const ParamValue& value : spec.defaults) defaults.push_back(to_string(value));
      text += fmt::format("    {:<12} {:<8} {}{} [{}]\n", spec.name, word_of(spec.type), spec.help,
                          spec.allowed.empty() ? "" : fmt::format(" ({})", fmt::join(spec.allowed, ", ")),
                          fmt::join(defaults, ", "));
    }
  }
  return text;
}

}  // namespace assay
