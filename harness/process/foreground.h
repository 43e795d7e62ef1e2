// A command in the foreground: started as a shell would start it, in this process group and terminal, and ended by
// nobody but its user.
#pragma once

#include "harness/core/files.h"
#include "harness/process/process.h"

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// How a command that could not be started ends, as env(1) has it.
inline constexpr int not_started = 125, not_executable = 126, not_found = 127;

// Takes the signals that are for the job, in the thread that makes it; call it before any other thread starts.
class ForegroundSignals {
 public:
  ForegroundSignals();
  // For a poll. SIGCHLD and SIGUSR1 are among them.
  int fd() const { return fd_; }
  struct Came {
    int signal = 0;
    bool from_terminal = false;  // the job has it, too: it is in the same process group
  };
  std::optional<Came> next();
  // As they were before, for the job.
  const sigset_t& mask() const { return mask_; }
  // Whether the signal is one to pass on.
  static bool is_passed_on(int signal);

 private:
  sigset_t mask_{};
  Descriptor fd_;
};

class ForegroundProcess {
 public:
  // In this process group, with this terminal and these streams. `variables` is its whole environment. If it cannot be
  // started, `problem` says why and `code` is that of env(1).
  ForegroundProcess(const std::vector<std::string>& words, const Variables& variables,
                    const ForegroundSignals& signals);

  pid_t pid() const { return pid_; }
  const std::string& problem() const { return problem_; }
  int code() const { return code_; }
  // Whether it has ended; it is not reaped yet.
  bool has_ended() const;
  // Reaps it, once it has ended.
  void reap();
  void pass_on(int signal) const;
  // The signal that it died of; 0: none.
  int signal() const { return signal_; }
  // Ends this process as the job ended: with its code, which is returned, or by its signal.
  int end_alike() const;

 private:
  pid_t pid_ = -1;
  int code_ = 0, signal_ = 0;
  bool reaped_ = false;
  std::string problem_;
};

}  // namespace assay
