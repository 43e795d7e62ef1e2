#include "harness/run/case_settings.h"

#include "harness/device/settings.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace assay {

void describe_settings(const Family& family, const Params& params, Record& record) {
  const std::map<std::string, std::string> own = environment_of(family, params);
  const DeviceKind device = device_kind_from(record.device).value_or(DeviceKind::cpu);
  for (const Setting& setting : settings_here(device, record.world_ranks)) {
    if (own.contains(setting.name)) continue;
    record.conditions[setting.name] = setting.value;
    if (setting.effect == SettingEffect::slows)
      record.flags.push_back(fmt::format("{}={} slows what is measured", setting.name, setting.value));
  }
}

void join_settings(Record& whole, const Record& part, int rank) {
  constexpr const char* differs = "not the same on all ranks";
  std::set<std::string> names;
  for (const Record* side : {&std::as_const(whole), &part})
    for (const auto& [name, value] : side->conditions)
      if (changes_figures(name)) names.insert(name);
  const auto value_in = [](const Record& side, const std::string& name) {
    const auto found = side.conditions.find(name);
    return found == side.conditions.end() ? std::nullopt : std::optional(found->second);
  };
  for (const std::string& name : names) {
    const std::optional<std::string> first = value_in(whole, name), own = value_in(part, name);
    if (first == own || first == differs) continue;
    whole.flags.push_back(fmt::format("{} is {}: rank {} has {}", name, differs, rank, own.value_or("none")));
    whole.conditions[name] = differs;
  }
}

}  // namespace assay
