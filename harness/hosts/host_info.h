// The properties of a host that takes part in a run, as its agent reports them.
#pragma once

#include "harness/hosts/gpu_place.h"

#include <optional>
#include <string>
#include <vector>

namespace assay {

// The usable CPUs of a NUMA node.
struct NodeCpus {
  int number = 0;
  std::vector<int> cpus;

  static void members(auto& self, auto& io) { io("number", self.number), io("cpus", self.cpus); }
};

struct HostInfo {
  std::string name;         // the launcher's, also used in records
  std::string kernel_name;  // gethostname
  std::string boot_id;      // equal on two hosts that are one machine
  std::string network;      // network namespace; with the boot id, identifies its loopback
  std::string architecture;
  std::string version;                        // channel_version()
  std::string library_path;                   // LD_LIBRARY_PATH, which decides what libraries its ranks load
  std::vector<std::vector<int>> cores;        // usable ones, neighbours next to each other, each with its usable CPUs
  std::vector<NodeCpus> nodes;                // NUMA nodes with usable CPUs
  int core_count = 1;                         // ranks that can have a core each, within the CPU quota
  int cpu_count = 1;                          // usable logical CPUs
  int gpu_count = 0;                          // visible to a process there; 0 in a run on CPUs
  std::optional<std::vector<GpuPlace>> gpus;  // in CUDA's order, if known

  static void members(auto& self, auto& io) {
    io("name", self.name), io("kernel_name", self.kernel_name), io("boot_id", self.boot_id);
    io("network", self.network), io("architecture", self.architecture), io("version", self.version);
    io("library_path", self.library_path);
    io("cores", self.cores), io("core_count", self.core_count), io("cpu_count", self.cpu_count);
    io("gpu_count", self.gpu_count), io("nodes", self.nodes), io.sparse("gpus", self.gpus);
  }
};

// Describes this host; `gpus` is what the CUDA module counts, 0 in a run on CPUs.
HostInfo probe_host(int gpus);

// Whether two hosts are one machine and have CPUs in common.
bool share_cpus(const HostInfo& a, const HostInfo& b);

}  // namespace assay
