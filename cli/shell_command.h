// Commands, run one after the other or several at once, timed, and ended with all that they started.
#pragma once

#include "harness/core/clock.h"
#include "harness/hosts/process.h"
#include "harness/run/end_signals.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::cli {

struct FinishedCommand {
  bool ended = false;            // by itself; else it was ended at the deadline or by a signal
  double seconds = 0;            // wall time from its start until the shell ended
  std::optional<int> code = {};  // its exit code, if it ended so
  std::string problem;           // "ended with code 3", "killed by SIGSEGV (signal 11)"; empty if it succeeded
  std::string output;            // stdout; only its tail if it is longer than 64 MiB
  bool whole = true;             // false: only the tail
  std::string errors;            // the tail of stderr
};

struct CommandToRun {
  std::vector<std::string> words;  // a program by its path first
  Variables variables;             // its whole environment
};

// For one thread, and once per process: it takes the signals that end a run, and all orphans.
class ShellCommands {
 public:
  // `seconds_to_die`: how long to wait for killed processes to be gone; one that the kernel holds is left to it.
  explicit ShellCommands(double seconds_to_die = 5);

  // By /bin/sh -c, with stdin from /dev/null. When it ends, everything that it left running is killed. Throws Error.
  FinishedCommand run(const std::string& command, Clock::time_point deadline);
  // Several at once. Returns when all have ended, or at the deadline.
  std::vector<FinishedCommand> run(const std::vector<CommandToRun>& commands, Clock::time_point deadline);
  // A program by its path, with this environment.
  FinishedCommand run(const std::vector<std::string>& words, const Variables& variables, Clock::time_point deadline);
  // Sleeps until then, or until a signal comes.
  void wait(Clock::time_point until);
  // SIGINT or SIGTERM came.
  bool interrupted() const { return signals_.interrupted(); }

 private:
  double seconds_to_die_;
  EndSignals signals_;
};

}  // namespace assay::cli
