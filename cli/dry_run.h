// assay run --dry-run: what would run, and where.
#pragma once

#include "harness/hosts/placement.h"
#include "harness/run/run.h"

#include <vector>

namespace assay::cli {

// The hosts of a request before contacting them: others are assumed to be like this one.
std::vector<HostInfo> hosts_like_this(const RunRequest& request);

// Where the ranks of a world would go on these hosts. Throws UsageError if there is not enough room.
Placement place(const RunRequest& request, const std::vector<HostInfo>& hosts, int ranks);

// Prints the cases with their costs and approximate times, then host, CPUs, NUMA node and GPU of every rank.
void print_dry_run(const RunRequest& request, const Plan& plan, const std::vector<HostInfo>& hosts);

}  // namespace assay::cli
