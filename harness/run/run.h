// Running a plan: the request of the command line, and the entry point.
#pragma once

#include "harness/core/error.h"
#include "harness/hosts/allocation.h"
#include "harness/machine/root.h"
#include "harness/plan/plan.h"
#include "harness/record/run_dir.h"

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
  PlanRequest plan;                             // its device is resolved; targets may be empty with `resume`
  PlanLimits limits;                            // this machine's
  Allocation allocation;                        // the hosts that take part
  std::optional<std::filesystem::path> out;     // --out; absent: runs/<start>
  std::optional<std::filesystem::path> resume;  // --resume
  std::map<std::string, std::string> labels;    // --label; override the plan's
  bool trace = false;
  bool each_host = false;
  bool share_gpu = false;
  std::optional<int> gpus;                // visible to a process on this host, if that was asked
  std::set<Fault> faults;                 // --inject
  std::vector<std::string> flags;         // added to the own flags of every record
  std::filesystem::path ended;            // where to write why it ended early, even without a directory; empty: nowhere
  std::vector<std::string> command_line;  // as it was typed
  // Prints the results once the run has ended, complete or not; for a drill (--inject) also the records with injected
  // faults.
  std::function<void(RunData run, bool drill)> report;
};

// The folder of generated data sets: $ASSAY_CACHE, else assay/ in the user's cache folder.
std::filesystem::path cache_folder();

// runs/PREFIX<start, in UTC>, with a number if that is taken.
std::filesystem::path default_out(const std::string& prefix = {});

// The device of an earlier run, for --resume. Throws UsageError when the directory holds no run.
DeviceKind device_of_run(const std::filesystem::path& dir);

// Flags of every record measured while ASSAY_ROOT describes another machine, so that none is comparable; else none.
std::vector<std::string> flags_of(const Root& root);

// Expands the plan, runs it with a worker group per world size, writes the run directory. Returns the worst exit code
// of the whole directory; throws UsageError when nothing could be started.
ExitCode run_plan(const RunRequest& request, std::span<const Family> families);

}  // namespace assay
