// Rank to host, CPUs, NUMA node and GPU: chosen by the supervisor from what the hosts say they have.
#pragma once

#include "harness/device/device.h"
#include "harness/hosts/allocation.h"
#include "harness/hosts/host_info.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr int max_ranks_per_cpu = 4;

struct RankSeat {
  int rank = 0;
  int host = 0;  // index of the hosts given
  int local_rank = 0;
  int local_size = 1;
  std::vector<int> cpus;         // ascending
  std::optional<int> numa_node;  // of all these CPUs; absent when they span several, or it is unknown
  std::optional<int> gpu;        // index on its host
};

struct Placement {
  std::vector<RankSeat> seats;  // by rank; hosts are filled in their order
  int hosts = 1;                // that have a rank
  bool oversubscribed = false;  // CPU ranks beyond the cores of a machine
  bool one_machine = false;     // hosts divide the cores of one machine: no measurement of several
};

struct PlacementRequest {
  int ranks = 1;
  DeviceKind device = DeviceKind::cpu;
  bool share_gpu = false;
  std::string origin = {};  // of the slots, for messages
};

// Seats for a world. A host takes its slots; without them as many ranks as it has GPUs, or on CPUs one. What is then
// left goes evenly to the hosts without slots: on CPUs up to max_ranks_per_cpu, to GPUs under share_gpu. Ranks of hosts
// that are one machine divide its cores. Throws UsageError when there is no room for all.
// `slots` and `hosts` are the same hosts in the same order.
Placement place_ranks(const std::vector<AllocatedHost>& slots, const std::vector<HostInfo>& hosts,
                      const PlacementRequest& request);

// Seats for the very world of `planned` on those hosts alone that are not `gone`; absent where they have no room for
// it, or where it would be another world: over more or fewer hosts, or with ranks that share what they did not share.
std::optional<Placement> place_elsewhere(const Placement& planned, const std::vector<bool>& gone,
                                         const std::vector<AllocatedHost>& slots, const std::vector<HostInfo>& hosts,
                                         const PlacementRequest& request);

// NUMA nodes of this host by the OS's number, each with its CPUs.
std::map<int, std::vector<int>> numa_nodes();
// The NUMA node that all of these CPUs belong to; absent when there is none such, or it is unknown.
std::optional<int> node_of_cpus(const std::map<int, std::vector<int>>& nodes, const std::vector<int>& cpus);

// World sizes through an allocation of several hosts: the ranks that its first 1, 2, 4, ... and all hosts take, those
// without slots as many as GPUs (`gpus_per_host`), on CPUs one. Empty for one host.
std::vector<int> walk_hosts(const Allocation& allocation, DeviceKind device, int gpus_per_host);

// CPU sets of a world's ranks as one word of the environment, "0-3,8;4-7" (ASSAY_CPUS_BY_RANK); and the one of `rank`,
// empty where there is none.
std::string cpu_sets(const std::vector<RankSeat>& seats);
std::string_view cpu_set_of(std::string_view sets, int rank);

}  // namespace assay
