#include "harness/run/end_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

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

EndSignals::EndSignals() {
  block_end_signals();
  const sigset_t set = end_signals();
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

EndSignals::~EndSignals() {
  if (fd_ >= 0) ::close(fd_);
}

bool EndSignals::holds(int signal) const {
  const sigset_t set = end_signals();
  return signal > 0 && signal != SIGCHLD && sigismember(&set, signal) == 1;
}

std::vector<int> EndSignals::take() {
  std::vector<int> came;
  signalfd_siginfo info;
  while (::read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    if (info.ssi_signo != SIGCHLD) came.push_back(static_cast<int>(info.ssi_signo));
  return came;
}

}  // namespace assay
