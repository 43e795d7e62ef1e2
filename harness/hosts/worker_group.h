// The workers of one world size: starts, watches and ends them, wherever they run.
#pragma once

#include "harness/hosts/placement.h"
#include "harness/process/poll_source.h"
#include "harness/process/process.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

class Agents;

enum class LauncherKind { local, mpirun };

// What this machine lacks to start `ranks` ranks, and the package that has it.
std::optional<std::string> missing_launcher(int ranks, DeviceKind device);
// The launcher for `ranks` ranks: mpirun for CPUs; one rank, and ranks on GPUs, are started directly. Throws UsageError
// with missing_launcher().
LauncherKind choose_launcher(int ranks, DeviceKind device);

struct LaunchRequest {
  LauncherKind kind = LauncherKind::local;
  int ranks = 1;
  bool oversubscribed = false;
  Variables environment = {};         // ASSAY_* of the workers
  std::string subcommand = "worker";  // of this program
  std::vector<RankSeat> seats = {};   // by rank; empty: all on this host, which the workers divide themselves
};

// A rank whose host is lost.
struct LostRank {
  int rank = -1;
  std::string reason;
};

// Its destructor ends everything that is left.
class WorkerGroup : public PollSource {
 public:
  // The last lines that the workers printed, without the launcher's boilerplate; at most `bytes` long. Only of `rank`
  // if ranks were started directly on several hosts.
  virtual std::string tail(std::size_t bytes, int rank) const = 0;

  // The worker of `rank` has this pid on its host. On this host it is held by a descriptor, so that a reused pid is
  // never killed.
  virtual void add_worker(int rank, pid_t pid) = 0;
  // Whether a launcher started the ranks; then the status of any one of them may be all that is known.
  virtual bool through_launcher() const = 0;
  // True once the launcher, or any worker, has ended.
  virtual bool reap() = 0;
  // The rank that ended first, if the workers were started directly.
  virtual std::optional<int> first_ended() const = 0;
  // How the worker of `rank` ended; with a launcher, or for a rank below 0, whatever ended first.
  virtual std::optional<int> wait_status(int rank) const = 0;
  // Reads until `rank` has ended (below 0, or with a launcher: all have), without ending it.
  virtual bool wait_end(double seconds, int rank = -1) = 0;
  // The first rank whose host is lost.
  virtual std::optional<LostRank> lost() const = 0;
  // Kills the workers, then the launcher, then whatever they left behind, on every host.
  virtual void kill_all() = 0;
};

// Starts the workers, on this host or through the agents of the hosts that have a seat. Throws Error when it cannot,
// and leaves nothing behind.
std::unique_ptr<WorkerGroup> start_group(const LaunchRequest& request, Agents* agents);

}  // namespace assay
