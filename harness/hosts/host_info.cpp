// A host's properties: probing, and to JSON and back.
#include "harness/hosts/host_info.h"

#include "harness/channel/channel.h"
#include "harness/core/error.h"
#include "harness/core/host.h"
#include "harness/device/cpu/topology.h"
#include "harness/hosts/cpu_share.h"
#include "harness/record/json_reader.h"

#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace assay {

namespace {

std::set<int> cpus_of(const HostInfo& host) {
  std::set<int> all;
  for (const auto& core : host.cores) all.insert(core.begin(), core.end());
  return all;
}

std::vector<int> numbers(const Json& list, const char* name) {
  if (!list.is_array()) throw Error(fmt::format("{}: not a list", name));
  std::vector<int> all;
  for (const Json& one : list) {
    if (!one.is_number_unsigned() || one.get<std::uint64_t>() > 1u << 20)
      throw Error(fmt::format("{}: not a list of CPUs", name));
    all.push_back(one.get<int>());
  }
  return all;
}

}  // namespace

HostInfo probe_host(int gpus) {
  HostInfo host;
  host.name = this_host();
  utsname kernel{};
  if (uname(&kernel) == 0) host.kernel_name = kernel.nodename;
  host.architecture = machine_architecture();
  host.boot_id = boot_id();
  std::error_code none;
  host.network = std::filesystem::read_symlink("/proc/self/ns/net", none).string();
  host.version = channel_version();
  host.cores = usable_cores();
  const std::set<int> usable = cpus_of(host);
  for (const cpu::NumaNode& node : cpu::topology().numa_nodes) {
    std::vector<int> cpus;
    for (const int cpu : node.cpus)
      if (usable.contains(cpu)) cpus.push_back(cpu);
    if (!cpus.empty()) host.nodes[node.number] = std::move(cpus);
  }
  host.core_count = usable_core_count();
  host.cpu_count = usable_cpu_count();
  host.gpu_count = gpus;
  if (gpus > 0) host.gpus = gpus_of_environment();
  return host;
}

Json to_json(const HostInfo& host) {
  Json json = {{"name", host.name},          {"kernel_name", host.kernel_name},   {"boot_id", host.boot_id},
               {"network", host.network},    {"architecture", host.architecture}, {"version", host.version},
               {"cores", host.cores},        {"core_count", host.core_count},     {"cpu_count", host.cpu_count},
               {"gpu_count", host.gpu_count}};
  json["nodes"] = Json::array();
  for (const auto& [number, cpus] : host.nodes) json["nodes"].push_back({{"number", number}, {"cpus", cpus}});
  if (host.gpus) {
    json["gpus"] = Json::array();
    for (const GpuPlace& gpu : *host.gpus)
      json["gpus"].push_back({{"pci", gpu.pci}, {"uuid", gpu.uuid}, {"numa_node", gpu.numa_node}});
  }
  return json;
}

HostInfo host_info_from(const Json& json) {
  const JsonReader reader(json, "");
  HostInfo host;
  host.name = reader.text("name");
  host.kernel_name = reader.text("kernel_name");
  host.boot_id = reader.text("boot_id");
  host.network = reader.text("network");
  host.architecture = reader.text("architecture");
  host.version = reader.text("version");
  if (json.contains("cores")) {
    if (!json["cores"].is_array()) throw Error("cores: not a list");
    for (const Json& core : json["cores"]) host.cores.push_back(numbers(core, "cores"));
  }
  if (json.contains("nodes")) {
    if (!json["nodes"].is_array()) throw Error("nodes: not a list");
    for (const Json& node : json["nodes"])
      host.nodes[JsonReader(node, "nodes").small("number", 0)] = numbers(node.value("cpus", Json()), "nodes");
  }
  host.core_count = std::max(1, reader.small("core_count", 1));
  host.cpu_count = std::max(1, reader.small("cpu_count", 1));
  host.gpu_count = reader.small("gpu_count", 0);
  if (reader.has("gpus")) {
    host.gpus.emplace();
    for (const JsonReader& gpu : reader.children("gpus"))
      host.gpus->push_back({gpu.text("pci"), gpu.text("uuid"), static_cast<int>(gpu.integer("numa_node", -1))});
  }
  return host;
}

bool share_cpus(const HostInfo& a, const HostInfo& b) {
  if (a.boot_id.empty() || a.boot_id != b.boot_id) return false;
  const std::set<int> one = cpus_of(a), other = cpus_of(b);
  return std::any_of(one.begin(), one.end(), [&](int cpu) { return other.contains(cpu); });
}

}  // namespace assay
