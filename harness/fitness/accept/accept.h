// An acceptance: a cluster from its audit to training, in stages that are trials, and one table at the end.
#pragma once

#include "harness/core/error.h"
#include "harness/fitness/accept/request.h"
#include "harness/fitness/cluster/cluster.h"
#include "harness/run/trial.h"

#include <filesystem>

namespace assay::accept {

struct Result {
  fitness::Acceptance table;
  bool broke = false;  // the tool, not a host

  // no_data if it is not complete; broken rather than "not enough to say" if the tool failed.
  ExitCode code() const;
};

// The folder of a new acceptance, with its state. Throws UsageError if it holds something, or cannot be made.
void begin(const std::filesystem::path& dir, const State& state);

// Runs the stages, or what is left of them, in a folder that holds the request's state. Evidence of hosts that failed
// is put below it. After a signal the table is what was seen so far. `past`: the file of what acceptances suspected,
// which drills leave alone; empty: none. Throws as Stages::run() does.
Result run(Request request, Trials& trials, const std::filesystem::path& dir, const std::filesystem::path& past = {});

}  // namespace assay::accept
