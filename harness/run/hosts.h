// This process's part in a run: to supervise it with the hosts that take part, or to serve one.
#pragma once

#include "harness/hosts/agents.h"
#include "harness/run/run.h"

#include <memory>
#include <variant>
#include <vector>

namespace assay {

// Of the process that supervises.
struct Hosts {
  Allocation allocation;           // every name is known
  std::vector<HostInfo> infos;     // in the same order
  std::unique_ptr<Agents> agents;  // nothing where this host alone takes part
};

// Gathers the hosts of the request's allocation; on a host that only serves, serves until the run is over and returns
// the exit code. Throws Error or UsageError naming the hosts that cannot take part.
std::variant<Hosts, ExitCode> take_part(const RunRequest& request, const Plan& plan);

// A duration from the environment ("30", "500ms"); absent and empty are the same. Throws UsageError.
double seconds_from_environment(const char* name, double otherwise);

// What run.json holds of each host: name, kernel's name, boot id, architecture, cores, GPUs, how far its clock is
// ahead.
Json hosts_json(const Hosts& hosts);

}  // namespace assay
