// What an acceptance was asked to do: checked, with its stages, hosts and times.
#pragma once

#include "cli/accept/level.h"
#include "cli/accept/stages.h"
#include "harness/fitness/cluster/cluster.h"
#include "harness/hosts/allocation.h"
#include "harness/plan/plan.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

// As typed.
struct AcceptOptions {
  std::string hostfile, level, floors, out, resume, json, device;
  bool with_serials = false, dry_run = false;
};

// Stages that are runs, in order.
inline constexpr std::string_view run_stages[] = {"host", "pairs", "collectives", "training"};

struct AcceptRequest {
  Level level;
  std::optional<fitness::Floors> user, fleet;
  Allocation allocation;
  DeviceKind device = DeviceKind::cpu;
  int ranks_per_host = 1;  // of worlds of all hosts: one on CPUs, else one per GPU
  AcceptState state;       // new, or that of the acceptance to continue

  // Why a check is not run on this many hosts; empty if it is.
  std::string why_not_run(std::string_view stage, std::size_t hosts) const;
  // World sizes of a stage; none: the plan's own.
  std::vector<int> ranks_of(std::string_view stage, std::size_t hosts) const;
  // Stages, hosts and times.
  std::string schedule() const;

 private:
  std::vector<PlannedCase> planned(std::string_view stage) const;
  // Floors that no case of these stages can be judged by, whatever it measures.
  std::vector<fitness::UnmeasuredFloor> floors_without_case(
      const std::map<std::string_view, std::vector<PlannedCase>>& cases) const;
  std::string plans_text(std::string_view stage) const;
  std::string not_run_text(std::string_view check, const std::string& why) const;
};

// Throws UsageError for anything that cannot be met, before anything runs: a request that differs from the acceptance
// to continue among it, naming every difference.
AcceptRequest make_accept_request(const AcceptOptions& options);

// Whether every host runs this stage by itself.
inline bool runs_alone(std::string_view stage) { return stage == "host"; }

// "3 hosts".
std::string hosts_text(std::size_t count);

}  // namespace assay::cli
