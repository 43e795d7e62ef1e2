// One host of a finished acceptance accepted once more, as after a repair, while the verdicts of the others stay.
#pragma once

#include "harness/fitness/accept/request.h"
#include "harness/fitness/cluster/cluster.h"
#include "harness/run/trial.h"

#include <filesystem>
#include <string>
#include <vector>

namespace assay::accept {

// Adds to the state that this host is to be accepted again, together with up to seven hosts that passed. Throws
// UsageError if the acceptance in `dir` is not finished or has no such host, with the nearest.
void add_again(Request& request, const std::string& host, const std::filesystem::path& dir);

// Tells how the acceptances of single hosts ended.
struct AgainResult {
  bool finished = true;  // false: a signal ended it
  bool broke = false;    // the tool, not a host
  std::vector<std::string> notes;
};
// Does, or finishes, what add_again() added; what is done is judged again and not run. Replaces the verdict of each
// such host, which keeps what it failed in before, and its audit. Throws as Stages::run() does.
AgainResult run_again(const Request& request, Trials& trials, const std::filesystem::path& dir,
                      std::vector<fitness::AcceptedHost>& hosts, fitness::AuditedFleet& audit);

}  // namespace assay::accept
