// Running a plan: what the command line asks for, and the supervisor's entry.
#pragma once

#include "harness/core/error.h"
#include "harness/hosts/allocation.h"
#include "harness/plan/plan.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace assay {

// `assay run`, parsed and checked; the plan itself is not expanded yet.
struct RunRequest {
  PlanRequest plan;                             // its device is resolved; targets may be empty when resuming
  PlanLimits limits;                            // of this machine
  Allocation allocation;                        // the hosts that take part
  std::optional<std::filesystem::path> out;     // --out; absent: runs/<start>
  std::optional<std::filesystem::path> resume;  // --resume
  std::map<std::string, std::string> labels;    // --label; joined with the plan's, which they override
  bool trace = false;
  bool each_host = false;
  bool share_gpu = false;
  std::optional<int> gpus;                // that a process of this host sees; nothing where nobody asked
  std::set<Fault> faults;                 // --inject
  std::vector<std::string> flags;         // that every record is to have, beside its own
  std::vector<std::string> command_line;  // as it was typed
  // Prints the results of the directory once the run has ended, complete or not; those of a drill (--inject) with the
  // records that faults were injected into.
  std::function<void(const std::filesystem::path& dir, bool drill)> report;
};

// Where generated data sets are kept: $ASSAY_CACHE, else assay/ in the user's cache folder.
std::filesystem::path cache_folder();

// The device of an earlier run: what --resume goes on with. Throws UsageError when the directory holds no run.
DeviceKind device_of_run(const std::filesystem::path& dir);

// Expands the plan, launches a worker group for each world size, keeps the run directory.
// Returns the worst exit code of the whole directory; throws UsageError when nothing could be started.
ExitCode run_plan(const RunRequest& request, std::span<const Family> families);

}  // namespace assay
