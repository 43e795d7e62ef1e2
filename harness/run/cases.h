// The cases of a run on its hosts: which are left to do, and the loop over groups of workers.
#pragma once

#include "harness/hosts/worker_group.h"
#include "harness/record/run_dir.h"
#include "harness/run/hosts.h"
#include "harness/run/progress.h"
#include "harness/run/run.h"
#include "harness/run/sink.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay {

struct Prepared {
  Plan plan;
  std::optional<RunData> before;  // the run that is resumed, as it was
  LauncherKind several_ranks = LauncherKind::mpirun;
  Hosts hosts;
  std::set<std::string> validated;  // paths through hardware that reference runs have taken (record/validation.h)
};

// Chooses the launcher and refuses, before the first case, a plan that these hosts cannot run. Throws UsageError.
void settle_launcher(const RunRequest& request, Prepared& prepared);

// Why a world that the plan, not the user (--ranks), asks for cannot be started on these hosts: too few GPUs, no
// mpirun. Its cases are skipped, since a plan is for any machine.
std::optional<std::string> without_place(const RunRequest& request, const std::vector<AllocatedHost>& slots,
                                         const std::vector<HostInfo>& hosts, int ranks);

// Runs what has no final record. False when it was interrupted.
bool run_cases(const RunRequest& request, const Prepared& prepared, const std::map<std::string, std::string>& labels,
               Progress& progress, RunSink& sink);

}  // namespace assay
