// The workers of one world size, wherever they run: what starts, watches and ends them.
#pragma once

#include "harness/hosts/placement.h"
#include "harness/hosts/process.h"

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

class Agents;

enum class LauncherKind { local, mpirun };

// The launcher of a world of `ranks` ranks: mpirun for CPUs; one rank, and ranks on GPUs, are started directly. Throws
// UsageError naming the package when what it needs is missing.
LauncherKind choose_launcher(int ranks, DeviceKind device);

struct LaunchRequest {
  LauncherKind kind = LauncherKind::local;
  int ranks = 1;
  bool oversubscribed = false;
  Variables environment = {};         // ASSAY_* of the workers
  std::string subcommand = "worker";  // of this program; what its processes are
  std::vector<RankSeat> seats = {};   // by rank; empty: this host, divided by the workers themselves
};

// A rank that cannot go on because its host cannot.
struct LostRank {
  int rank = -1;
  std::string reason;
};

class WorkerGroup {
 public:
  // Ends everything that is left.
  virtual ~WorkerGroup() = default;

  // What to poll for; read() then takes what has come.
  virtual void add_fds(std::vector<pollfd>& fds) const = 0;
  virtual void read() = 0;
  // The last lines that the workers printed, the launcher's own boilerplate left out; at most `bytes` long. Of one rank
  // where ranks are started directly on several hosts.
  virtual std::string tail(std::size_t bytes, int rank) const = 0;

  // The worker of `rank` said hello under this pid of its host: held by a descriptor where that host is this one, so
  // that a reused pid is never killed.
  virtual void add_worker(int rank, pid_t pid) = 0;
  // Whether a launcher stands between, whose status tells of some rank.
  virtual bool through_launcher() const = 0;
  // True once the launcher, or the first of the workers, has ended.
  virtual bool reap() = 0;
  // The rank that ended first, where the workers were started directly.
  virtual std::optional<int> first_ended() const = 0;
  // How the worker of `rank` ended; through a launcher, or for a rank below 0, what ended first.
  virtual std::optional<int> wait_status(int rank) const = 0;
  // Waits for a voluntary end of `rank` (below 0, or through a launcher: of all), reading output meanwhile.
  virtual bool wait_end(double seconds, int rank = -1) = 0;
  // The first rank whose host is lost.
  virtual std::optional<LostRank> lost() const = 0;
  // Kills the workers, then the launcher, then whatever of theirs was left, on every host.
  virtual void kill_all() = 0;
};

// Starts the workers: here, or through the agents of the hosts where the seats are. Throws Error when that cannot be,
// with nothing left behind.
std::unique_ptr<WorkerGroup> start_group(const LaunchRequest& request, Agents* agents);

}  // namespace assay
