#include "harness/process/foreground.h"

#include "harness/core/error.h"
#include "harness/core/text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace assay {
namespace {

// SIGTSTP and SIGCONT do to this process what they do to the job.
constexpr std::array passed_on = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR2};

std::vector<char*> list_of(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

ForegroundSignals::ForegroundSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : passed_on) {
    struct sigaction now {};
    // What was ignored from the start (nohup) stays ignored, here and in the job.
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&taken, signal);
  }
  sigaddset(&taken, SIGCHLD), sigaddset(&taken, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &taken, &mask_);
  fd_ = Descriptor(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (fd_ < 0) throw Error(fmt::format("no signals for the job: {}", std::strerror(errno)));
}

bool ForegroundSignals::is_passed_on(int signal) { return std::ranges::find(passed_on, signal) != passed_on.end(); }

std::optional<ForegroundSignals::Came> ForegroundSignals::next() {
  signalfd_siginfo about{};
  if (::read(fd_, &about, sizeof about) != static_cast<ssize_t>(sizeof about)) return std::nullopt;
  return Came{static_cast<int>(about.ssi_signo), about.ssi_code == SI_KERNEL};
}

ForegroundProcess::ForegroundProcess(const std::vector<std::string>& words, const Variables& variables,
                                     const ForegroundSignals& signals) {
  std::vector<std::string> own_words = words, own_variables;
  for (const auto& [name, value] : variables) own_variables.push_back(name + "=" + value);
  const std::vector<char*> word_list = list_of(own_words), variable_list = list_of(own_variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("no pipe: {}", std::strerror(errno)));
  Descriptor reader(ends[0]), writer(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw Error(fmt::format("no process for {}: {}", one_line(words.front()), std::strerror(errno)));
  if (pid_ == 0) {
    ::sigprocmask(SIG_SETMASK, &signals.mask(), nullptr);
    ::signal(SIGPIPE, SIG_DFL), ::signal(SIGXFSZ, SIG_DFL);  // prepare_streams() changed them
    ::execvpe(word_list.front(), word_list.data(), variable_list.data());
    const int why = errno;
    (void)!::write(writer, &why, sizeof why);
    ::_exit(why == ENOENT ? not_found : not_executable);
  }
  writer.close();
  int why = 0;
  ssize_t got = 0;
  while ((got = ::read(reader, &why, sizeof why)) < 0 && errno == EINTR) continue;
  if (got != static_cast<ssize_t>(sizeof why)) return;
  reap();
  problem_ = fmt::format("{}: {}", one_line(words.front()), std::strerror(why));
}

bool ForegroundProcess::has_ended() const {
  siginfo_t about{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOHANG | WNOWAIT) == 0 && about.si_pid != 0;
}

void ForegroundProcess::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  reaped_ = true;
  if (WIFSIGNALED(status)) signal_ = WTERMSIG(status);
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + signal_;
}

void ForegroundProcess::pass_on(int signal) const {
  if (!reaped_) ::kill(pid_, signal);
}

int ForegroundProcess::end_alike() const {
  if (signal_ == 0) return code_;
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // the job has left its own
  ::signal(signal_, SIG_DFL);
  sigset_t only;
  sigemptyset(&only), sigaddset(&only, signal_);
  ::raise(signal_);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  return code_;  // of a signal that does not end this process
}

}  // namespace assay
