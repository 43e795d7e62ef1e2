// A run with --each-host counts as one run per host, so that reports treat each host as a machine.
#pragma once

#include "harness/record/run_dir.h"

#include <vector>

namespace assay {

bool ran_on_each_host(const RunData& run);

// The run itself, or for --each-host one run per host, with the host's records and its environment and findings from
// the member "hosts" of run.json. Records of hosts not listed there become a run without an environment. Unreadable
// lines stay with the first run.
std::vector<RunData> split_hosts(RunData run);

}  // namespace assay
