// Workers on this host, or a launcher started on it.
#pragma once

#include "harness/hosts/worker_group.h"

namespace assay {

// Settings of mpirun for several hosts; empty for a launcher of this host's ranks only.
struct SeveralHosts {
  std::string hosts;         // "n1:2,n2:2", for mpirun's --host
  Variables variables;       // of mpirun itself, not of the ranks
  bool one_network = false;  // all share this process's network namespace
};

// The launcher, or the workers themselves (LauncherKind::local). Each leads its own process group and dies with the
// thread that started it.
class LocalGroup : public WorkerGroup {
 public:
  explicit LocalGroup(const LaunchRequest& request, const SeveralHosts& several = {});
  ~LocalGroup() override;
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;

  void add_fds(std::vector<pollfd>& fds) const override;
  void read() override;
  std::string tail(std::size_t bytes, int rank) const override;
  void add_worker(int rank, pid_t pid) override;
  bool through_launcher() const override { return !direct_; }
  bool reap() override;
  std::optional<int> first_ended() const override { return direct_ ? first_ended_ : std::nullopt; }
  std::optional<int> wait_status(int rank) const override;
  bool wait_end(double seconds, int rank = -1) override;
  std::optional<LostRank> lost() const override { return std::nullopt; }
  void kill_all() override;

  bool ended(int rank) const;

 private:
  void start(const LaunchRequest& request, const SeveralHosts& several, int rank);

  std::vector<Child> processes_;    // the launcher, or the workers by rank
  std::optional<int> first_ended_;  // index
  bool direct_ = true;
  Output output_;
  std::vector<int> workers_;
};

}  // namespace assay
