// The properties of a host that takes part in a run, as its agent reports them.
#pragma once

#include "harness/core/json_fwd.h"
#include "harness/hosts/gpu_place.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct HostInfo {
  std::string name;         // the launcher's, also used in records
  std::string kernel_name;  // gethostname
  std::string boot_id;      // equal on two hosts that are one machine
  std::string network;      // network namespace; with the boot id, identifies its loopback
  std::string architecture;
  std::string version;                        // channel_version()
  std::vector<std::vector<int>> cores;        // usable ones, neighbours next to each other, each with its usable CPUs
  std::map<int, std::vector<int>> nodes;      // NUMA node to its usable CPUs
  int core_count = 1;                         // ranks that can have a core each, within the CPU quota
  int cpu_count = 1;                          // usable logical CPUs
  int gpu_count = 0;                          // visible to a process there; 0 in a run on CPUs
  std::optional<std::vector<GpuPlace>> gpus;  // in CUDA's order, if known
};

// Of this host; `gpus` as counted by the CUDA module, 0 in a run on CPUs.
HostInfo probe_host(int gpus);

Json to_json(const HostInfo& host);
// Throws Error on members of a wrong type.
HostInfo host_info_from(const Json& json);

// Whether two hosts are one machine and have CPUs in common.
bool share_cpus(const HostInfo& a, const HostInfo& b);

}  // namespace assay
