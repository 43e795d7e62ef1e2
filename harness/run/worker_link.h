// A worker's end of the channel.
#pragma once

#include "harness/channel/connect.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace assay {

// The place of this process in its world, from ASSAY_RANK and ASSAY_SIZE or the launcher's variables (Open MPI, PMI,
// PMIx, Slurm). Throws Error when a value is not a number or out of range.
struct RankPlace {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
};
RankPlace rank_place();

// Connects, sends a Hello, then runs a thread that sends heartbeats and reads orders. When the supervisor is gone, the
// thread kills the process: a rank inside a collective cannot do anything else.
class WorkerLink {
 public:
  // Throws Error when the supervisor cannot be reached.
  explicit WorkerLink(const RankPlace& place);
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  // The next order; nothing when the work is done.
  std::optional<Message> next();
  // The value of this name that rank 0 shared (harness/run/shared_values.h). Throws Error after `seconds` without it.
  std::string shared(const std::string& name, double seconds);
  // Thread-safe. A supervisor that does not read for 30 s counts as gone.
  void send(const Message& message);
  // Heartbeats carry the rank's progress as `progress` fills it in. The link's own thread calls it, even while the
  // worker hangs; an empty function removes it.
  void set_progress(std::function<void(message::Heartbeat&)> progress);

 private:
  void listen();
  void handle(Message message);
  void send_heartbeat();

  std::unique_ptr<ChannelClient> client_;
  int stop_pipe_[2] = {-1, -1};
  std::mutex send_mutex_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> orders_;
  std::map<std::string, std::string> shared_;
  std::mutex progress_mutex_;
  std::function<void(message::Heartbeat&)> progress_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace assay
