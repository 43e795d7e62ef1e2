#include "harness/process/end_signals.h"

#include "harness/core/error.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

namespace assay {

namespace {

sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&set, signal);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void block_end_signals() {
  const sigset_t set = end_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

EndSignals::EndSignals(std::string ends, std::function<void(const std::string&)> note, std::function<void()> kill)
    : ends_(std::move(ends)), note_(std::move(note)), kill_(std::move(kill)) {
  block_end_signals();
  const sigset_t set = end_signals();
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

EndSignals::~EndSignals() {
  if (fd_ >= 0) ::close(fd_);
}

bool EndSignals::contains(int signal) const {
  const sigset_t set = end_signals();
  return signal > 0 && signal != SIGCHLD && sigismember(&set, signal) == 1;
}

void EndSignals::read() {
  signalfd_siginfo info;
  while (::read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (interrupted_ && signal == SIGINT) {
      kill_();
      note_("assay: interrupted again; exiting at once");
      ::_exit(static_cast<int>(ExitCode::no_data));
    }
    if (!interrupted_) note_(fmt::format("assay: interrupted by SIG{}; ending {}", sigabbrev_np(signal), ends_));
    interrupted_ = true;
  }
}

}  // namespace assay
