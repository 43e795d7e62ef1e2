// Watches a command from its start to its end: telemetry, the steps of its ranks, what limits it, a record of it.
#pragma once

#include "harness/process/foreground.h"
#include "harness/watch/text.h"

#include <filesystem>
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
  std::filesystem::path out;              // the run directory to make
  std::vector<std::string> command_line;  // of this process
};

// Runs the command and returns the code to end with: its own, or that of env(1) if it could not be started. What it
// prints goes to stderr. A signal that ended the job ends this process, too. Nothing that fails here fails the job.
// Call it before any other thread starts.
int watch(const WatchRequest& request);

}  // namespace assay::watch
