// fork and exec of workers, or of mpirun; and the end of all of them.
#include "harness/hosts/local_group.h"

#include "harness/core/error.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace assay {

namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> command_for(const LaunchRequest& request, const BeyondThisHost& beyond) {
  std::vector<std::string> words;
  if (request.kind == LauncherKind::mpirun) {
    words = {find_program("mpirun"), "-n", std::to_string(request.ranks), "--bind-to", "none"};
    if (beyond.hosts.empty())
      words.push_back("--oversubscribe");
    else
      // Daemons stay attached to what started them, so that they end with it.
      words.insert(words.end(), {"--host", beyond.hosts, "--map-by", "slot:OVERSUBSCRIBE", "--leave-session-attached"});
    if (::geteuid() == 0) words.push_back("--allow-run-as-root");
    for (const auto& [name, value] : request.environment) words.insert(words.end(), {"-x", name});
  }
  words.insert(words.end(), {own_binary(), request.subcommand});
  return words;
}

Variables variables_for(const LaunchRequest& request, const BeyondThisHost& beyond, int rank) {
  Variables all = inherited_variables();
  for (const auto& [name, value] : request.environment) all[name] = value;
  if (request.kind == LauncherKind::local) {
    const std::string own = std::to_string(rank), ranks = std::to_string(request.ranks);
    for (const auto& [name, value] :
         Variables{{"ASSAY_RANK", own}, {"ASSAY_SIZE", ranks}, {"ASSAY_LOCAL_RANK", own}, {"ASSAY_LOCAL_SIZE", ranks}})
      all[name] = value;
    return all;
  }
  // Open MPI decides by its own count of slots whether to spin or to yield; the supervisor knows better.
  all.try_emplace("OMPI_MCA_mpi_yield_when_idle", request.oversubscribed ? "1" : "0");
  // Crashed ranks are described by the supervisor: no back traces.
  all.try_emplace("OMPI_MCA_opal_signal", "");
  // Ranks of one host need no network beyond its own; without one, Open MPI 5 complains of it for each pair.
  if (beyond.hosts.empty() && !all.contains("OMPI_MCA_btl_tcp_if_exclude"))
    all.try_emplace("OMPI_MCA_btl_tcp_if_include", "lo");
  // The hosts are settled; a hostfile by default would be read beside them.
  if (!beyond.hosts.empty()) std::erase_if(all, [](const auto& one) { return one.first.ends_with("hostfile"); });
  for (const auto& [name, value] : beyond.variables) all[name] = value;
  return all;
}

// A launcher that is asked to end while it is still starting may never do so. Nobody is left to insist once the
// supervisor is gone, so this child sleeps until one of the two ends and then does; the ranks die with their launcher.
[[noreturn]] void insist(pid_t launcher, pid_t supervisor) {
  constexpr int grace_ms = 1000;
  // The supervisor's sockets and locks must end with it, not with this child.
  if (::close_range(0, ~0U, 0) != 0) ::_exit(0);
  ::setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  pollfd ends[2] = {{pidfd_open(launcher), POLLIN, 0}, {pidfd_open(supervisor), POLLIN, 0}};
  if (::getppid() != supervisor) ends[1].fd = -1;
  while (ends[1].fd >= 0 && ::poll(ends, 2, -1) < 0 && errno == EINTR) {
  }
  if (ends[0].fd >= 0 && ::poll(ends, 1, grace_ms) == 0) pidfd_kill(ends[0].fd);
  ::_exit(0);
}

}  // namespace

LocalGroup::LocalGroup(const LaunchRequest& request, const BeyondThisHost& beyond)
    : direct_(request.kind == LauncherKind::local) {
  try {
    for (int i = 0; i < (direct_ ? request.ranks : 1); ++i) start(request, beyond, i);
  } catch (...) {
    kill_all();
    throw;
  }
  output_.close_writer();
}

void LocalGroup::start(const LaunchRequest& request, const BeyondThisHost& beyond, int rank) {
  ProcessRequest process;
  process.words = command_for(request, beyond);
  process.variables = variables_for(request, beyond, rank);
  process.output = output_.writer();
  // mpirun is asked, so that it ends its ranks and removes its files; a worker is not.
  process.death_signal = direct_ ? SIGKILL : SIGTERM;
  const pid_t parent = ::getpid();
  const pid_t pid = start_process(process);
  processes_.push_back({pid, std::nullopt});
  if (!direct_ && ::fork() == 0) insist(pid, parent);
}

LocalGroup::~LocalGroup() {
  kill_all();
  for (const int worker : workers_) ::close(worker);
}

void LocalGroup::add_fds(std::vector<pollfd>& fds) const { fds.push_back({output_.fd(), POLLIN, 0}); }

void LocalGroup::read() { (void)output_.read(); }

std::string LocalGroup::tail(std::size_t bytes, int) const { return tail_of(output_.kept(), bytes); }

void LocalGroup::add_worker(int, pid_t pid) {
  if (const int fd = pidfd_open(pid); fd >= 0) workers_.push_back(fd);
}

bool LocalGroup::reap() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    int status = 0;
    if (process.status || ::waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
    process.status = status;
    if (!first_ended_) first_ended_ = static_cast<int>(i);
  }
  return first_ended_.has_value();
}

bool LocalGroup::ended(int rank) const {
  if (direct_ && rank >= 0 && static_cast<std::size_t>(rank) < processes_.size())
    return processes_[static_cast<std::size_t>(rank)].status.has_value();
  return std::all_of(processes_.begin(), processes_.end(), [](const Process& one) { return one.status.has_value(); });
}

std::optional<int> LocalGroup::wait_status(int rank) const {
  const int index = direct_ && rank >= 0 ? rank : first_ended_.value_or(-1);
  if (index < 0 || static_cast<std::size_t>(index) >= processes_.size()) return std::nullopt;
  return processes_[static_cast<std::size_t>(index)].status;
}

bool LocalGroup::wait_end(double seconds, int rank) {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    read();
    reap();
    if (ended(rank)) {
      read();
      return true;
    }
    if (Clock::now() >= until) return false;
    pollfd output{output_.fd(), POLLIN, 0};
    ::poll(&output, 1, 10);
  }
}

void LocalGroup::kill_all() {
  for (const int worker : workers_) pidfd_kill(worker);
  reap();
  if (!direct_ && !ended(-1)) {
    ::kill(processes_.front().pid, SIGCONT);
    ::kill(processes_.front().pid, SIGTERM);
    wait_end(2.0);
  }
  // Until it is reaped the pid is its own, and so is the group that it leads.
  for (const Process& process : processes_)
    if (!process.status) ::kill(-process.pid, SIGKILL);
  if (!ended(-1)) wait_end(5.0);
  end_children(5.0, [this](pid_t pid, int status) {
    for (Process& process : processes_)
      if (process.pid == pid) process.status = status;
  });
}

}  // namespace assay
