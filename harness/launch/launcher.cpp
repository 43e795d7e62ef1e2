// fork and exec, mpirun, srun; and the end of all of them.
#include "harness/launch/launcher.h"

#include "harness/core/error.h"
#include "harness/core/module.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

extern char** environ;

namespace assay {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kept_output = 64u << 10;

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/bin:/bin";
  while (true) {
    const std::size_t colon = rest.find(':');
    const std::string file = std::string(rest.substr(0, colon)) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
    if (colon == rest.npos) return {};
    rest.remove_prefix(colon + 1);
  }
}

std::string own_binary() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw Error(fmt::format("cannot find the own binary: {}", error.message()));
  return path.string();
}

std::vector<std::string> command_for(const LaunchRequest& request) {
  const std::string ranks = std::to_string(request.ranks);
  std::vector<std::string> words;
  if (request.kind == LauncherKind::mpirun) {
    words = {find_program("mpirun"), "-n", ranks, "--bind-to", "none", "--oversubscribe"};
    if (::geteuid() == 0) words.push_back("--allow-run-as-root");
    for (const auto& [name, value] : request.environment) words.insert(words.end(), {"-x", name});
  } else if (request.kind == LauncherKind::srun) {
    words = {find_program("srun"), "--ntasks", ranks, "--cpu-bind=none", "--kill-on-bad-exit=1", "--export=ALL"};
    if (request.oversubscribed) words.push_back("--overcommit");
  }
  words.insert(words.end(), {own_binary(), "worker"});
  return words;
}

std::vector<std::string> environment_for(const LaunchRequest& request, int rank) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != text.npos) all[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  // What a surrounding launcher left would be taken for this one's.
  for (const char* name : {"ASSAY_RANK", "ASSAY_SIZE", "ASSAY_LOCAL_RANK", "ASSAY_LOCAL_SIZE", "ASSAY_CPUS"})
    all.erase(name);
  for (const auto& [name, value] : request.environment) all[name] = value;
  if (request.kind == LauncherKind::local) {
    const std::string own = std::to_string(rank), ranks = std::to_string(request.ranks);
    for (const auto& [name, value] : std::map<std::string, std::string>{
             {"ASSAY_RANK", own}, {"ASSAY_SIZE", ranks}, {"ASSAY_LOCAL_RANK", own}, {"ASSAY_LOCAL_SIZE", ranks}})
      all[name] = value;
  } else {
    // Open MPI decides by its own count of slots whether to spin or to yield; the supervisor knows better.
    all.try_emplace("OMPI_MCA_mpi_yield_when_idle", request.oversubscribed ? "1" : "0");
    // Crashed ranks are described by the supervisor: no back traces.
    all.try_emplace("OMPI_MCA_opal_signal", "");
    // Ranks of one host need no network beyond its own; without one, Open MPI 5 complains of it for each pair.
    if (!several_hosts(request.kind) && !all.contains("OMPI_MCA_btl_tcp_if_exclude"))
      all.try_emplace("OMPI_MCA_btl_tcp_if_include", "lo");
  }
  std::vector<std::string> list;
  for (const auto& [name, value] : all) list.push_back(name + "=" + value);
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

// Between fork and exec: system calls only.
[[noreturn]] void become(char* const* words, char* const* env, int output, pid_t parent, int death_signal) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, death_signal);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, 0);
  ::dup2(output, 1);
  ::dup2(output, 2);
  ::execve(words[0], words, env);
  static const char text[] = "cannot be executed\n";
  (void)!::write(2, text, sizeof text - 1);
  ::_exit(127);
}

int pidfd_open(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
void pidfd_kill(int fd) { ::syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0); }

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

// Children of this process, orphans that it adopted included.
std::vector<pid_t> children(const std::set<pid_t>& foreign) {
  std::vector<pid_t> found;
  const std::string self = std::to_string(::getpid());
  std::ifstream file("/proc/self/task/" + self + "/children");
  for (pid_t pid; file >> pid;)
    if (!foreign.contains(pid)) found.push_back(pid);
  return found;
}

// Children from before the first group: of a shell that became this process by exec. They are not ours to end.
std::set<pid_t>& foreign_children() {
  static std::set<pid_t> pids;
  return pids;
}

// The launcher frames its own remarks with lines of dashes, and prefixes some with its host and pid.
std::string without_boilerplate(std::string_view text) {
  std::string kept;
  bool framed = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool dashes = line.size() >= 20 && line.find_first_not_of('-') == line.npos;
    if (dashes) framed = !framed;
    if (dashes || framed || line.find_first_not_of(" \t\r") == line.npos) continue;
    kept.append(line).push_back('\n');
  }
  return kept;
}

}  // namespace

LauncherKind choose_launcher(int ranks, DeviceKind device) {
  if (ranks == 1) return LauncherKind::local;
  const char* job = std::getenv("SLURM_JOB_ID");
  const bool slurm = job && *job && !find_program("srun").empty();
  if (device != DeviceKind::cpu) return slurm ? LauncherKind::srun : LauncherKind::local;
  const std::string word = fmt::format("--ranks {}", ranks);
  if (Module::find("mpi").empty())
    throw UsageError(
        fmt::format("{} needs libassay-mpi.so, which is not beside the binary: install libopenmpi-dev and build "
                    "again with -DASSAY_MPI=ON",
                    word));
  if (slurm) return LauncherKind::srun;
  if (find_program("mpirun").empty())
    throw UsageError(fmt::format("{} needs mpirun, which is not in PATH: install openmpi-bin", word));
  return LauncherKind::mpirun;
}

bool several_hosts(LauncherKind kind) {
  if (kind != LauncherKind::srun) return false;
  const char* nodes = std::getenv("SLURM_JOB_NUM_NODES");
  return !nodes || std::strcmp(nodes, "1") != 0;
}

WorkerGroup::WorkerGroup(const LaunchRequest& request) : direct_(request.kind == LauncherKind::local) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("no pipe for the workers: {}", std::strerror(errno)));
  output_fd_ = ends[0];
  ::fcntl(output_fd_, F_SETFL, O_NONBLOCK);
  try {
    for (int i = 0; i < (direct_ ? request.ranks : 1); ++i) start(request, i, ends[1]);
  } catch (...) {
    ::close(ends[1]);
    kill_all();
    ::close(output_fd_);
    throw;
  }
  ::close(ends[1]);
}

void WorkerGroup::start(const LaunchRequest& request, int rank, int output) {
  std::vector<std::string> words = command_for(request), env = environment_for(request, rank);
  const std::vector<char*> word_list = pointers(words), env_list = pointers(env);
  const pid_t parent = ::getpid();
  // mpirun and srun are asked, so that they end their ranks and remove their files; a worker is not.
  const int death_signal = direct_ ? SIGKILL : SIGTERM;
  const pid_t pid = ::fork();
  if (pid == 0) become(word_list.data(), env_list.data(), output, parent, death_signal);
  if (pid < 0) throw Error(fmt::format("no process for the workers: {}", std::strerror(errno)));
  processes_.push_back({pid, std::nullopt});
  ::setpgid(pid, pid);
  if (!direct_ && ::fork() == 0) insist(pid, parent);
}

WorkerGroup::~WorkerGroup() {
  kill_all();
  for (const int worker : workers_) ::close(worker);
  if (output_fd_ >= 0) ::close(output_fd_);
}

void WorkerGroup::read_output() {
  char block[16384];
  for (;;) {
    const ssize_t got = ::read(output_fd_, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got == 0) {  // closed: poll must not report it for ever
        ::close(output_fd_);
        output_fd_ = -1;
      }
      return;
    }
    output_.append(block, static_cast<std::size_t>(got));
    if (output_.size() > 2 * kept_output) output_.erase(0, output_.size() - kept_output);
  }
}

std::string WorkerGroup::tail(std::size_t bytes) const {
  std::string text = without_boilerplate(output_);
  if (text.size() > bytes) {
    text.erase(0, text.size() - bytes);
    if (const std::size_t newline = text.find('\n'); newline + 1 < text.size()) text.erase(0, newline + 1);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void WorkerGroup::add_worker(pid_t pid) {
  if (const int fd = pidfd_open(pid); fd >= 0) workers_.push_back(fd);
}

bool WorkerGroup::reap() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    int status = 0;
    if (process.status || ::waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
    process.status = status;
    if (!first_ended_) first_ended_ = static_cast<int>(i);
  }
  return first_ended_.has_value();
}

bool WorkerGroup::ended(int rank) const {
  if (direct_ && rank >= 0 && static_cast<std::size_t>(rank) < processes_.size())
    return processes_[static_cast<std::size_t>(rank)].status.has_value();
  return std::all_of(processes_.begin(), processes_.end(), [](const Process& one) { return one.status.has_value(); });
}

std::optional<int> WorkerGroup::wait_status(int rank) const {
  const int index = direct_ && rank >= 0 ? rank : first_ended_.value_or(-1);
  if (index < 0 || static_cast<std::size_t>(index) >= processes_.size()) return std::nullopt;
  return processes_[static_cast<std::size_t>(index)].status;
}

bool WorkerGroup::wait_end(double seconds, int rank) {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    if (output_fd_ >= 0) read_output();
    reap();
    if (ended(rank)) {
      if (output_fd_ >= 0) read_output();
      return true;
    }
    if (Clock::now() >= until) return false;
    pollfd output{output_fd_, POLLIN, 0};
    ::poll(&output, 1, 10);
  }
}

void WorkerGroup::kill_all() {
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
  const auto until = Clock::now() + std::chrono::seconds(5);
  const auto& foreign = foreign_children();
  for (auto left = children(foreign); !left.empty() && Clock::now() < until; left = children(foreign)) {
    for (const pid_t child : left) ::kill(child, SIGKILL);
    for (const pid_t child : left) {
      int status = 0;
      if (::waitpid(child, &status, WNOHANG) != child) continue;
      for (Process& process : processes_)
        if (process.pid == child) process.status = status;
    }
    ::poll(nullptr, 0, 2);
  }
}

std::string describe_status(int wait_status, bool through_launcher) {
  int signal = 0;
  if (WIFSIGNALED(wait_status)) signal = WTERMSIG(wait_status);
  const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
  if (through_launcher && code > 128 && code < 128 + 65) signal = code - 128;
  if (signal != 0) {
    const char* name = sigabbrev_np(signal);
    return fmt::format("killed by {} (signal {})", name ? fmt::format("SIG{}", name) : "a signal", signal);
  }
  return code != 0 ? fmt::format("ended with code {}", code) : std::string();
}

void adopt_orphans() {
  for (const pid_t pid : children({})) foreign_children().insert(pid);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

}  // namespace assay
