#include "harness/runs/machine.h"

#include "harness/core/text.h"
#include "harness/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay {

namespace {

std::string memory_text(const Json& environment) {
  auto bytes = number_member(environment, "/memory/limit_bytes");
  if (!bytes) bytes = number_member(environment, "/memory/installed_bytes");
  if (!bytes) bytes = number_member(environment, "/memory/total_bytes");
  return bytes ? fmt::format("{:.0f} GiB", std::round(*bytes / 0x1p30)) : std::string();
}

// A label overrides what was detected: the user knows better.
std::string labelled(const Json& run, const char* label, const char* pointer) {
  const std::string given = text_member(run, std::string("/labels/") + label);
  return given.empty() ? text_member(run, pointer) : given;
}

}  // namespace

RunMachine machine_of(const RunData& run) {
  RunMachine machine;
  const Json& environment = member(run.run, "/environment");
  machine.cpu = text_member(environment, "/cpu/name");
  if (const auto cores = number_member(environment, "/cpu/usable_cores"))
    machine.cores = static_cast<int>(std::clamp(*cores, 0.0, 1e6));
  machine.provider = labelled(run.run, "provider", "/environment/cloud/provider");
  machine.instance_type = labelled(run.run, "instance_type", "/environment/cloud/instance_type");
  machine.region = labelled(run.run, "region", "/environment/cloud/region");
  if (const Json& hosts = member(environment, "/hostnames"); hosts.is_array())
    for (const Json& host : hosts)
      if (host.is_string()) machine.hosts.push_back(host.get<std::string>());
  if (machine.hosts.empty())
    for (const Record& record : run.records)
      for (const RankResult& rank : record.ranks)
        if (!rank.host.empty()) machine.hosts.push_back(rank.host);
  std::ranges::sort(machine.hosts);
  machine.hosts.erase(std::unique(machine.hosts.begin(), machine.hosts.end()), machine.hosts.end());

  std::vector<std::string> parts;
  if (!machine.cpu.empty()) parts.push_back(machine.cpu);
  if (machine.cores) parts.push_back(plural(*machine.cores, "core"));
  if (const std::string memory = memory_text(environment); !memory.empty()) parts.push_back(memory);
  if (const Json& gpus = member(environment, "/gpus"); gpus.is_array()) {
    machine.gpus = static_cast<int>(gpus.size());
    if (!gpus.empty()) machine.gpu = text_member(gpus.front(), "/name");
    parts.push_back(gpus.empty() ? "no GPU"
                                 : fmt::format("{} x {}", gpus.size(), machine.gpu.empty() ? "GPU" : machine.gpu));
  }
  if (!machine.instance_type.empty()) parts.push_back(machine.instance_type);
  machine.name = joined(parts);
  return machine;
}

std::vector<std::string> hardware_names(const RunData& run, const Record& record) {
  if (record.device == "cpu")
    return {text_member(run.run, "/environment/cpu/name"), text_member(run.run, "/environment/cpu/brand")};
  std::vector<std::string> names;
  for (const RankResult& rank : record.ranks) names.push_back(rank.device);
  names.push_back(machine_of(run).gpu);
  return names;
}

}  // namespace assay
