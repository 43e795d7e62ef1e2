// `assay audit` over hosts: asks each for its audit and puts them side by side.
#pragma once

#include "cli/options.h"
#include "harness/hosts/allocation.h"
#include "harness/json/json.h"
#include "harness/machine/machine.h"
#include "reports/hosts/audits.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::cli {

struct FleetOptions {
  bool with_serials = false, with_bmc = false;
  std::string expect = {};  // file of what each host should have
  double timeout_seconds = 60;
  std::vector<std::string> runs = {};  // of --each-host on these hosts
};

// The hosts of --hostfile, or of the Slurm job that this process is in if they are several; absent: only this one.
// Throws UsageError as find_allocation does.
std::optional<Allocation> hosts_to_audit(const std::string& hostfile);

// Runs `assay audit --json` on every host, and prints the audits of all and where they differ. Throws UsageError for a
// bad expectation before any host is asked.
ExitCode audit_hosts(const Allocation& allocation, const FleetOptions& options, const Outputs& outputs);

// Adds to an audit which GPUs the host has, and with `with_serials` their serial numbers and, if it may be read, the
// host's.
void add_identities(AuditedMachine& audit, const Root& root, const Machine& machine, bool with_serials);

}  // namespace assay::cli
