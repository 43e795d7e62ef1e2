// This process's part in a run: the supervisor of the hosts that take part, or the agent of a host.
#pragma once

#include "harness/hosts/agents.h"
#include "harness/machine/finding.h"
#include "harness/run/run.h"

#include <memory>
#include <variant>
#include <vector>

namespace assay {

// The hosts of a run, as its supervisor knows them.
struct Hosts {
  Allocation allocation;           // with the name of every host
  std::vector<HostInfo> infos;     // in the same order
  std::unique_ptr<Agents> agents;  // null if only this host takes part
};

// Gathers the hosts of the request's allocation. In an agent or bystander it serves until the run is over and returns
// the exit code. Throws Error or UsageError that names the hosts that cannot take part.
std::variant<Hosts, ExitCode> take_part(const RunRequest& request, const Plan& plan);

// ASSAY_LAUNCH_LIMIT, 60 by default: seconds for workers or hosts to start. Throws UsageError.
double launch_limit();

// Differences between the hosts: clocks, paths of libraries.
std::vector<Finding> find_differences(const Agents& agents);

// The hosts as in run.json, each with name, kernel's name, boot id, architecture, cores, GPUs and how far its clock is
// ahead.
Json hosts_json(const Hosts& hosts);

}  // namespace assay
