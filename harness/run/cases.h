// The cases of a run on the hosts that it has: what is left to do, and the loop over groups of workers. Who keeps what
// comes of it is another matter: a directory, or the supervisor of a run on each host.
#pragma once

#include "harness/record/run_dir.h"
#include "harness/run/hosts.h"
#include "harness/run/run.h"
#include "harness/run/supervisor.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct Prepared {
  Plan plan;
  std::optional<RunData> before;  // what a resumed run holds already
  LauncherKind several_ranks = LauncherKind::mpirun;
  Hosts hosts;
};

// Everything that can be refused of a plan on these hosts is refused by here, before the first case. Throws UsageError.
void settle_launcher(const RunRequest& request, Prepared& prepared);

// Why a world that the plan itself asks for, and not the user (--ranks), has too few GPUs on these hosts: its cases are
// skipped, since a plan is for any machine.
std::optional<std::string> without_place(const RunRequest& request, const std::vector<AllocatedHost>& slots,
                                         const std::vector<HostInfo>& hosts, int ranks);

// Who takes what comes of the cases. Each may throw, which ends the run after the workers were ended.
struct CaseSinks {
  std::filesystem::path run_dir = {};  // told to the workers; empty: there is none here
  Supervisor::Sink record;
  std::function<void(const std::string& name, std::string_view text, bool anew)> file;
  std::function<std::unique_ptr<Progress>(std::size_t cases, double seconds)> progress;
  // Called about every second while the run goes on.
  std::function<void()> go_on = {};
  // Under --trace.
  std::function<void(std::vector<trace::RankTimeline>, Progress&)> timelines = {};
};

// Runs what has no final record. False when it was interrupted.
bool run_cases(const RunRequest& request, const Prepared& prepared, const std::map<std::string, std::string>& labels,
               const CaseSinks& sinks);

}  // namespace assay
