// What an acceptance was asked to do: checked, with its stages and hosts.
#pragma once

#include "harness/device/device.h"
#include "harness/fitness/accept/level.h"
#include "harness/fitness/accept/state.h"
#include "harness/fitness/cluster/audits.h"
#include "harness/fitness/floors/floors.h"
#include "harness/hosts/allocation.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::accept {

// As typed.
struct Options {
  std::string hostfile, only_passed, topology, level, floors, expect, out, resume, again, device;
  bool with_serials = false, dry_run = false;
};

// Stages that are runs, in order.
inline constexpr auto run_stages = std::to_array<std::string_view>({"host", "pairs", "collectives", "training"});

struct Request {
  Level level;
  std::optional<fitness::Floors> user, fleet;
  Allocation allocation;
  DeviceKind device = DeviceKind::cpu;
  int ranks_per_host = 1;  // of worlds of all hosts: those of the level on CPUs, else one per GPU
  // Whether hosts other than this one say by their audits whether GPUs are measured (unless --device said it), and how
  // many they have: settle() does. Until then level and device are those of CPUs.
  bool asks_hosts = false;
  bool audits_first = false;  // before anything is written: asks_hosts, or the floors may be for other hardware
  std::string gpus = {};      // "8 x NVIDIA H100 80GB HBM3 on each host", as they said
  std::vector<std::string> families = {};  // that this build knows
  State state;                             // new, or that of the acceptance to continue

  // Why a check is not run on this many hosts; empty if it is.
  std::string why_not_run(std::string_view stage, std::size_t hosts) const;
  // World size of a stage; absent: the plan's own.
  std::optional<int> ranks_of(std::string_view stage, std::size_t hosts) const;
};

// Throws UsageError for anything that cannot be met, before anything runs: a request that differs from the acceptance
// to continue among it, naming every difference.
Request make_request(const Options& options);

// Device, ranks and plans by what most of the hosts that answered have. Throws UsageError if GPUs were asked for and no
// host has one, if the level is not one for the device, or if the floors are for the hardware of none of the hosts.
void settle(Request& request, const fitness::AuditedFleet& audit);

// Hosts that --floors are not for, by their audits; none if the floors or a host do not say their hardware. Throws
// UsageError if they are for none of the hosts.
std::vector<std::string> hosts_of_other_hardware(const Request& request, const fitness::AuditedFleet& audit);

// Whether every host runs this stage by itself.
inline bool runs_alone(std::string_view stage) { return stage == "host"; }

}  // namespace assay::accept
