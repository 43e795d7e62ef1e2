// The signals that end a run in good order, read where a loop waits for other things too.
#pragma once

#include <vector>

namespace assay {

// SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 (which schedulers send ahead of a time limit), and SIGHUP unless it was ignored
// from the start (nohup). SIGCHLD wakes the reader. They stay blocked for the life of the process: workers that are
// started unblock them.
class EndSignals {
 public:
  EndSignals();
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Whether a process that this signal ended was ended in good order.
  bool holds(int signal) const;
  // For a poll.
  int fd() const { return fd_; }
  // Those that have come since the last call, SIGCHLD left out.
  std::vector<int> take();

 private:
  int fd_ = -1;
};

// Blocks them in the calling thread and those that it starts, so that the one that reads them gets them. For who starts
// threads before it waits.
void block_end_signals();

}  // namespace assay
