// The supervisor's assignment of ranks to hosts, CPUs, NUMA nodes and GPUs.
#pragma once

#include "harness/device/device.h"
#include "harness/hosts/allocation.h"
#include "harness/hosts/host_info.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr int max_ranks_per_cpu = 4;

struct RankSeat {
  int rank = 0;
  int host = 0;  // index
  int local_rank = 0;
  int local_size = 1;
  std::vector<int> cpus;         // ascending
  std::optional<int> numa_node;  // of all these CPUs; absent if they span several, or it is unknown
  std::optional<int> gpu;        // index on its host
};

struct Placement {
  std::vector<RankSeat> seats;  // by rank; hosts are filled in their order
  int hosts = 1;                // that have a rank
  bool oversubscribed = false;  // CPU ranks beyond the cores of a machine
  bool one_machine = false;     // hosts share the cores of one machine, so the run does not measure several
};

struct PlacementRequest {
  int ranks = 1;
  DeviceKind device = DeviceKind::cpu;
  bool share_gpu = false;
  std::string origin = {};  // of the slots, for messages
};

// Seats for a world. A host fills its slots; without slots it takes one rank per GPU, or one rank on CPUs. The
// remaining ranks are spread evenly over the hosts without slots: on CPUs up to max_ranks_per_cpu, on GPUs with
// share_gpu. Ranks of hosts that are one machine divide its cores. Throws UsageError when there is no room for all.
// `slots` and `hosts` are the same hosts in the same order.
Placement place_ranks(const std::vector<AllocatedHost>& slots, const std::vector<HostInfo>& hosts,
                      const PlacementRequest& request);

// Seats for the world of `planned` on the hosts that are not `gone`. Absent if they have no room for it, or it would be
// another world: with more or fewer hosts, or with ranks that share CPUs or machines as they did not before.
std::optional<Placement> place_elsewhere(const Placement& planned, const std::vector<bool>& gone,
                                         const std::vector<AllocatedHost>& slots, const std::vector<HostInfo>& hosts,
                                         const PlacementRequest& request);

// NUMA nodes of this host, by the OS's numbers.
std::vector<NodeCpus> numa_nodes();
// The NUMA node that all of these CPUs belong to; absent if they span several, or it is unknown.
std::optional<int> node_of_cpus(const std::vector<NodeCpus>& nodes, const std::vector<int>& cpus);

// World sizes for an allocation of several hosts: the ranks of its first 1, 2, 4, ... and all hosts; a host without
// slots takes `gpus_per_host`, or one on CPUs. Empty for one host.
std::vector<int> walk_hosts(const Allocation& allocation, DeviceKind device, int gpus_per_host);

// The CPU sets of a world's ranks for ASSAY_CPUS_BY_RANK, "0-3,8;4-7"; and that of `rank`, empty if there is none.
std::string cpu_sets(const std::vector<RankSeat>& seats);
std::string_view cpu_set_of(std::string_view sets, int rank);

}  // namespace assay
