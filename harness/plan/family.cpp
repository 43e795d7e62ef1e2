#include "harness/plan/family.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

std::map<std::string, std::string> environment_of(const Family& family, const Params& params) {
  return family.environment ? family.environment(params) : std::map<std::string, std::string>();
}

bool runs_at_world_sizes(const Family& family) { return family.workload || family.communicates; }

bool can_inject(const Family& family, Fault fault, int ranks) {
  switch (fault) {
    case Fault::crash:
    case Fault::hang:
    case Fault::oom:
    case Fault::oversubscribe:
    case Fault::slow_rank: return true;
    case Fault::slow_link:
      if (ranks < 2) return false;
      break;
    case Fault::wrong_sum:
      if (ranks < 2 && family.workload) return false;
      break;
    default: break;
  }
  return std::ranges::find(family.faults, fault) != family.faults.end();
}

const Family* find_family(std::span<const Family> families, std::string_view name) {
  for (const Family& family : families)
    if (family.name == name) return &family;
  return nullptr;
}

std::unique_ptr<Case> make_case(const Family& family, const Params& params, DeviceKind device) {
  return device == DeviceKind::cuda && family.make_cuda ? family.make_cuda(params) : family.make(params);
}

std::optional<std::string> lacking_on(const Family& family, const Params& params, DeviceKind device) {
  if (std::ranges::find(family.devices, device) == family.devices.end())
    return fmt::format("{} does not run on {}", family.name, name_of(device));
  for (const ParamSpec& spec : family.params)
    for (const auto& [name, value] : params.items())
      if (name == spec.name && spec.has(device) && !spec.has(value, device))
        return fmt::format("{}={} does not run on {}", name, to_string(value), name_of(device));
  return std::nullopt;
}

}  // namespace assay
