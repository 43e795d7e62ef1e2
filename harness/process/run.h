// Runs programs to their end: reads what they print, ends them at a limit or when a signal ends this process, and says
// how they ended.
#pragma once

#include "harness/core/clock.h"
#include "harness/process/end_signals.h"
#include "harness/process/process.h"

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ProcessRun {
  ProcessRequest process = {};  // what it prints is read here, unless it says where that goes
  // What a forked child does instead of becoming a program. It may write to `output`.
  std::function<void(int output)> body = {};
  double limit_seconds = std::numeric_limits<double>::infinity();  // from its start
  // From the SIGTERM that ends it at the limit or after a signal to SIGKILL; 0: SIGKILL at once.
  double grace_seconds = 0;
  // From SIGKILL until it is given up, as the kernel may hold it.
  double death_seconds = 1;
  std::size_t max_output = std::size_t{64} << 20;  // a longer output is replaced by its tail
  bool ends_beyond = false;                        // and ends the process
  bool merged = false;                             // stderr is part of the output
  // Are called with what is printed as it comes. With the first the output is not kept.
  std::function<void(std::string_view)> on_output = {}, on_errors = {};
  // Are called when the process has started, and when it has ended by itself: /proc still knows what it used.
  std::function<void(pid_t)> on_start = {}, on_end = {};
};

// Why a process was ended.
enum class Stopped { no, late, too_long, interrupted };

struct FinishedProcess {
  Stopped stopped = Stopped::no;
  double seconds = 0;            // wall time from its start to its end
  std::optional<int> code = {};  // its exit code, if it ended by itself and not by a signal
  int signal = 0;                // that it died of by itself
  std::string problem = {};      // "ended with code 3", "killed by SIGSEGV (signal 11)"; empty if it succeeded
  std::string output = {};       // stdout
  bool whole = true;             // false: only the tail of the output
  std::string errors = {};       // the tail of stderr

  bool ended() const { return stopped == Stopped::no; }
};

// When a program ends, all that it left in its process group is killed. Descendants outside of it that hold its pipes
// are read for half a second more. Throws Error if there can be no process; a program that cannot be executed ends with
// code 127.
FinishedProcess run_process(const ProcessRun& run);
// Several, so many of them at the same time. In their order.
std::vector<FinishedProcess> run_processes(const std::vector<ProcessRun>& runs, std::size_t at_once = 64);

// Runs programs until a signal ends this process. For one thread, and once per process: it takes the signals that end a
// run, and all orphans.
class Children {
 public:
  // `ends`: what a signal is said to end. `death_seconds`: how long to wait for killed processes to be gone; one that
  // the kernel holds is left to it. `idle` is called at least twice a second while a program runs.
  explicit Children(const std::string& ends, double death_seconds = 5, std::function<void()> idle = {});

  // As run_process(); but when the program has ended, everything below this process is killed.
  FinishedProcess run(const ProcessRun& run);
  // Several at once. Returns when all are over.
  std::vector<FinishedProcess> run_all(const std::vector<ProcessRun>& runs);
  // Sleeps until then, or until a signal comes.
  void wait(Clock::time_point until);
  // A signal that ends a run came.
  bool interrupted() const { return signals_.interrupted(); }

 private:
  double death_seconds_;
  std::function<void()> idle_;
  EndSignals signals_;
};

}  // namespace assay
