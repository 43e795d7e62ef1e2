// What is known of a host that takes part in a run: what its agent says of it at its hello.
#pragma once

#include "harness/core/json_fwd.h"
#include "harness/hosts/gpu_place.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct HostInfo {
  std::string name;         // by which the launcher knows it, and records name it
  std::string kernel_name;  // gethostname
  std::string boot_id;      // equal on two hosts that are one machine
  std::string network;      // network namespace: with the boot id, whose loopback it has
  std::string architecture;
  std::string version;                        // channel_version()
  std::vector<std::vector<int>> cores;        // usable ones, neighbours next to each other, each with its usable CPUs
  std::map<int, std::vector<int>> nodes;      // NUMA node to its usable CPUs
  int core_count = 1;                         // ranks that have a core of their own; the CPU quota counts too
  int cpu_count = 1;                          // usable logical CPUs
  int gpu_count = 0;                          // that a process there sees; 0 in a run on CPUs
  std::optional<std::vector<GpuPlace>> gpus;  // in the order of CUDA; nothing where that is not known
};

// Of the host that this process runs on; `gpus` as the CUDA module counts them, 0 on a CPU.
HostInfo probe_host(int gpus);

Json to_json(const HostInfo& host);
// Throws Error on members of a wrong type.
HostInfo host_info_from(const Json& json);

// Whether two hosts are one machine whose CPUs both may use.
bool share_cpus(const HostInfo& a, const HostInfo& b);

}  // namespace assay
