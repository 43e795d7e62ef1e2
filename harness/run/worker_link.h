// A worker's end of the channel.
#pragma once

#include "harness/core/json_fwd.h"

#include <nlohmann/json.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace assay {

// Where this process stands in its world, from ASSAY_RANK and ASSAY_SIZE or the launcher's own variables (Open MPI,
// PMI, PMIx, Slurm). Throws Error when a value is no number or out of range.
struct RankPlace {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
};
RankPlace rank_place();

// Connects, says hello, then keeps a thread that sends heartbeats and reads orders. When the supervisor goes, the
// thread ends the process at once: a rank that waits in a collective can do nothing else.
class WorkerLink {
 public:
  // Throws Error when the supervisor cannot be reached.
  explicit WorkerLink(const RankPlace& place);
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  // The next order ("case"); null when the work is done.
  Json next();
  // What rank 0 shares under this name, once the supervisor has passed it on (harness/run/shared_values.h). Throws
  // Error when it has not come after `seconds`.
  std::string shared(const std::string& name, double seconds);
  // Thread-safe. A supervisor that does not read for 30 s counts as gone.
  void send(const Json& message);
  // Heartbeats carry what `where` says of this rank: its collectives so far. Called by the link's own thread, whatever
  // the worker does meanwhile; an empty function ends it.
  void tell_where(std::function<void(Json& heartbeat)> where);

 private:
  void listen();
  void send_heartbeat();

  int fd_ = -1;
  int stop_pipe_[2] = {-1, -1};
  std::mutex send_mutex_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Json> orders_;
  std::map<std::string, std::string> shared_;
  std::mutex where_mutex_;
  std::function<void(Json&)> where_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace assay
