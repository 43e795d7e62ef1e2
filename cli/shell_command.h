// Commands of the user, run by the shell one after the other, timed, and ended with all that they started.
#pragma once

#include "harness/core/clock.h"
#include "harness/run/end_signals.h"

#include <string>

namespace assay::cli {

struct FinishedCommand {
  bool ended = false;   // by itself; else it was ended at the deadline or by a signal
  double seconds = 0;   // wall time from its start until the shell ended
  std::string problem;  // "ended with code 3", "killed by SIGSEGV (signal 11)"; empty if it succeeded
  std::string output;   // stdout; only its tail if it is longer than 64 MiB
  bool whole = true;    // false: only the tail
  std::string errors;   // the tail of stderr
};

// For one thread, and once per process: it takes the signals that end a run, and all orphans.
class ShellCommands {
 public:
  ShellCommands();

  // By /bin/sh -c, with stdin from /dev/null. When it ends, everything that it left running is killed. Throws Error.
  FinishedCommand run(const std::string& command, Clock::time_point deadline);
  // SIGINT or SIGTERM came.
  bool interrupted() const { return signals_.interrupted(); }

 private:
  EndSignals signals_;
};

}  // namespace assay::cli
