// The signals that end a run in an orderly way, read in the run's loop.
#pragma once

#include "harness/process/poll_source.h"

#include <functional>
#include <string>
#include <vector>

namespace assay {

// SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 (which schedulers send ahead of a time limit), and SIGHUP unless it was ignored
// from the start (nohup). They stay blocked for the life of the process, except in workers that it starts. SIGCHLD only
// wakes the reader.
class EndSignals : public PollSource {
 public:
  // The first signal is noted with what it ends ("the workers"). A second SIGINT calls `kill` and exits at once.
  EndSignals(std::string ends, std::function<void(const std::string&)> note, std::function<void()> kill);
  ~EndSignals() override;
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Whether this signal ends a run.
  bool contains(int signal) const;
  bool interrupted() const { return interrupted_; }

  void add_fds(std::vector<pollfd>& fds) const override { fds.push_back({fd_, POLLIN, 0}); }
  void read() override;

 private:
  std::string ends_;
  std::function<void(const std::string&)> note_;
  std::function<void()> kill_;
  int fd_ = -1;
  bool interrupted_ = false;
};

// Blocks these signals in the calling thread and the threads that it starts, so that only EndSignals gets them.
// Programs that start threads before they make an EndSignals must call it first.
void block_end_signals();

}  // namespace assay
