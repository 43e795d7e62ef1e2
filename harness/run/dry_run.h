// assay run --dry-run: what would run, and where.
#pragma once

#include "harness/hosts/placement.h"
#include "harness/run/run.h"

#include <string>
#include <vector>

namespace assay {

// The hosts of a request before contacting them: others are assumed to be like this one.
std::vector<HostInfo> hosts_like_this(const RunRequest& request);

// Where the ranks of a world would go on these hosts. Throws UsageError if there is not enough room.
Placement place(const RunRequest& request, const std::vector<HostInfo>& hosts, int ranks);

// Sets the limits of a run on GPUs: the least memory of their sheets, if the driver and the sheets know each. This
// machine's memory does not limit it.
void set_limits_of_gpus(PlanLimits& limits);

// Sets the limits of a run over several of these hosts: its world sizes, and how many ranks share a host's memory. They
// refer to the request.
void set_limits_of_hosts(RunRequest& request, const std::vector<HostInfo>& hosts);

// The cases with their costs and approximate times, then host, CPUs, NUMA node and GPU of every rank. Throws UsageError
// as place() does.
std::string dry_run_text(const RunRequest& request, const Plan& plan, const std::vector<HostInfo>& hosts);

}  // namespace assay
