// What an acceptance was asked to do: checked, with its stages and hosts.
#pragma once

#include "harness/device/device.h"
#include "harness/fitness/accept/level.h"
#include "harness/fitness/accept/state.h"
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
  std::string hostfile, level, floors, expect, out, resume, device;
  bool with_serials = false, dry_run = false;
};

// Stages that are runs, in order.
inline constexpr auto run_stages = std::to_array<std::string_view>({"host", "pairs", "collectives", "training"});

struct Request {
  Level level;
  std::optional<fitness::Floors> user, fleet;
  Allocation allocation;
  DeviceKind device = DeviceKind::cpu;
  int ranks_per_host = 1;                  // of worlds of all hosts: one on CPUs, else one per GPU
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

// Whether every host runs this stage by itself.
inline bool runs_alone(std::string_view stage) { return stage == "host"; }

}  // namespace assay::accept
