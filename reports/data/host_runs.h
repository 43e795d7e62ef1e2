// A run with --each-host is as many runs as it had hosts: every report then knows each host as a machine of its own.
#pragma once

#include "harness/record/run_dir.h"

#include <vector>

namespace assay::report {

bool ran_on_each_host(const RunData& run);

// The run itself, or, of one with --each-host, a run for each host: its records, and its own environment and findings
// out of the member "hosts" of run.json in their places. Records of no host that is listed there are a run without an
// environment. Lines that could not be read stay with the first.
std::vector<RunData> split_hosts(RunData run);

}  // namespace assay::report
