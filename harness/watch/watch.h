// Watches a command from its start to its end: telemetry, the steps of its ranks, what limits it, a record of it.
#pragma once

#include "harness/core/error.h"
#include "harness/process/foreground.h"
#include "harness/watch/diagnosis.h"
#include "harness/watch/window.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::watch {

struct WatchRequest {
  std::vector<std::string> words;  // the command
  std::string name;                // of the job; empty: its first word that is no launcher
  std::optional<double> items;     // per step, of all ranks
  std::string unit = "items";
  std::optional<double> flops;        // per step, of all ranks
  std::optional<double> for_seconds;  // then it is told what was seen, and the job goes on unwatched
  std::map<std::string, std::string> labels;
  std::filesystem::path out;  // the run directory to make
  // Finds the cheapest machine with such GPUs; may be empty.
  std::function<std::optional<CheapestGpu>(const SmallerGpu&)> cheapest;
  TraceReader traces;                     // without `read` no steps are recorded
  std::vector<std::string> command_line;  // of this process
};

// Runs the command and returns the code to end with: its own, or that of env(1) if it could not be started. What it
// prints goes to stderr. A signal that ended the job ends this process, too. Nothing that fails here fails the job.
// Call it before any other thread starts.
int watch(const WatchRequest& request);

// A job on several hosts, from the runs of their watchers: one record in `given.out`, and its end on stdout. `given`
// has name, labels, `out` and the command line. no_data if ranks are missing, or they made too few steps. Throws
// UsageError.
ExitCode show_joined(const WatchRequest& given, const std::vector<std::filesystem::path>& runs);

}  // namespace assay::watch
