// Starting and ending the workers of one world size, without leaving a process behind.
#pragma once

#include "harness/device/device.h"

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

enum class LauncherKind { local, mpirun, srun };

// The launcher of a world of `ranks` ranks here: the worker itself for 1, srun inside a Slurm allocation; else mpirun
// for CPU ranks, and for GPUs the supervisor starts every worker itself. Throws UsageError naming the package when what
// it needs is missing.
LauncherKind choose_launcher(int ranks, DeviceKind device);
bool several_hosts(LauncherKind kind);

struct LaunchRequest {
  LauncherKind kind = LauncherKind::local;
  int ranks = 1;
  bool oversubscribed = false;
  std::map<std::string, std::string> environment;  // ASSAY_* of the workers
};

// A running group: the launcher, or the workers themselves (LauncherKind::local). Each leads a process group of its
// own, so that a terminal's Ctrl-C does not reach it, and dies with the thread that started it.
class WorkerGroup {
 public:
  // Throws Error when nothing can be started; what was started is then ended.
  explicit WorkerGroup(const LaunchRequest& request);
  // Ends everything that is left.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // What the workers print arrives here; poll it, then call read_output().
  int output_fd() const { return output_fd_; }
  void read_output();
  // The last lines that the workers printed, the launcher's own boilerplate left out; at most `bytes` long.
  std::string tail(std::size_t bytes) const;

  // A worker of this host that said hello: held by a descriptor, so that a reused pid is never killed.
  void add_worker(pid_t pid);
  // Whether a launcher stands between, whose status tells of some rank.
  bool through_launcher() const { return !direct_; }
  // True once the launcher, or the first of the workers, has ended.
  bool reap();
  // The rank that ended first, where the workers were started directly.
  std::optional<int> first_ended() const { return direct_ ? first_ended_ : std::nullopt; }
  // How the worker of `rank` ended; through a launcher, or for a rank below 0, what ended first.
  std::optional<int> wait_status(int rank) const;
  // Waits for a voluntary end of `rank` (below 0, or through a launcher: of all), reading output meanwhile.
  bool wait_end(double seconds, int rank = -1);
  // Kills the workers, then the launcher, then whatever of theirs was left to this process.
  void kill_all();

 private:
  struct Process {
    pid_t pid = -1;
    std::optional<int> status;
  };
  void start(const LaunchRequest& request, int rank, int output);
  bool ended(int rank) const;

  std::vector<Process> processes_;  // the launcher, or the workers by rank
  std::optional<int> first_ended_;  // index
  bool direct_ = true;
  int output_fd_ = -1;
  std::string output_;
  std::vector<int> workers_;
};

// "killed by SIGSEGV (signal 11)", "ended with code 3"; mpirun's 128 + signal is understood. Empty for a clean end.
std::string describe_status(int wait_status, bool through_launcher);

// Makes this process the parent of orphans below it, so that kill_all() finds them.
void adopt_orphans();

}  // namespace assay
