// The command that is watched: started as a shell would start it, and ended by nobody but its user.
#pragma once

#include "harness/core/files.h"
#include "harness/process/process.h"

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace assay::watch {

// How a command that could not be started ends, as env(1) has it.
inline constexpr int watch_failed = 125, not_executable = 126, not_found = 127;

// Takes the signals that are for the job, in the thread that makes it; call it before any other thread starts.
class JobSignals {
 public:
  JobSignals();
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
  static bool is_for_job(int signal);

 private:
  sigset_t mask_{};
  Descriptor fd_;
};

class Job {
 public:
  // In this process group, with this terminal and these streams. `variables` is its whole environment. If it cannot be
  // started, `problem` says why and `code` is that of env(1).
  Job(const std::vector<std::string>& words, const Variables& variables, const JobSignals& signals);

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

// The environment of the job: this process's, with the hooks' folder first in PYTHONPATH if there is one.
Variables variables_with_hook(const std::string& hook_folder, const std::string& address);
// The folder of the hooks beside the binary or in the source tree; empty if there is none.
std::string hook_folder();
// Why Python, if that is what the words start, will not run the hooks: its options -S, -E and -I skip them. Empty if
// it will, or if the command is something else.
std::string why_not_hooked(const std::vector<std::string>& words);

}  // namespace assay::watch
