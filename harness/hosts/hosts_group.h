// Workers on several hosts: started by the agents, or by an mpirun on this host whose daemons the agents start.
#pragma once

#include "harness/hosts/agents.h"
#include "harness/hosts/local_group.h"
#include "harness/hosts/worker_group.h"

namespace assay {

class HostsGroup : public WorkerGroup {
 public:
  // `agents` must outlive this. A rank with a seat on a lost host is lost.
  HostsGroup(const LaunchRequest& request, Agents& agents);
  ~HostsGroup() override;
  HostsGroup(const HostsGroup&) = delete;
  HostsGroup& operator=(const HostsGroup&) = delete;

  void add_fds(std::vector<pollfd>& fds) const override;
  void read() override;
  std::string tail(std::size_t bytes, int rank) const override;
  void add_worker(int rank, pid_t pid) override;
  bool through_launcher() const override { return launcher_ != nullptr; }
  bool reap() override;
  std::optional<int> first_ended() const override;
  std::optional<int> wait_status(int rank) const override;
  bool wait_end(double seconds, int rank = -1) override;
  std::optional<LostRank> lost() const override;
  void kill_all() override;

 private:
  void start_launcher(const LaunchRequest& request);
  bool ended(int rank) const;
  const Agents::Remote& remote(std::size_t rank) const { return agents_.remote(ids_[rank]); }

  Agents& agents_;
  std::vector<RankSeat> seats_;
  std::vector<int> hosts_;  // that have a seat
  std::vector<int> ids_;    // of the workers, by rank, if the agents started them
  std::optional<int> first_ended_;
  std::unique_ptr<LocalGroup> launcher_;
};

}  // namespace assay
