// fork and exec, pipes, orphans.
#include "harness/process/process.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

extern char** environ;

namespace assay {

namespace {

constexpr std::size_t kept_output = 64u << 10;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

// Between fork and exec: system calls only.
[[noreturn]] void become(char* const* words, char* const* env, const ProcessRequest& request) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  const int input = request.input >= 0 ? request.input : ::open("/dev/null", O_RDONLY);
  if (input >= 0) ::dup2(input, 0);
  ::dup2(request.output, 1);
  ::dup2(request.errors >= 0 ? request.errors : request.output, 2);
  ::execve(words[0], words, env);
  static const char text[] = "cannot be executed\n";
  (void)!::write(2, text, sizeof text - 1);
  ::_exit(127);
}

// `child` runs in a new process that leads its group, and does not return.
pid_t fork_leader(const std::string& name, int death_signal, const std::function<void()>& child) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(fmt::format("no process for {}: {}", name, std::strerror(errno)));
  ::setpgid(pid, pid);  // in both, so that neither has to wait for the other
  if (pid > 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, death_signal);
  if (::getppid() != parent) ::_exit(127);
  child();
  ::_exit(127);
}

// Children from before adopt_orphans(), of a shell that became this process by exec: not to be ended.
std::set<pid_t>& foreign_children() {
  static std::set<pid_t> pids;
  return pids;
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

// The launcher puts its remarks between lines of dashes, or begins them with its name. With Open MPI 5 each rank that
// loses a peer prints a long report, and there are zero bytes between the output of ranks.
std::string without_boilerplate(std::string_view text) {
  std::string kept;
  bool framed = false, lost_peer = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    std::erase(line, '\0');
    const bool report = line.starts_with("[") && line.find("] *** ") != line.npos;
    lost_peer = report && (lost_peer || line.ends_with("*** An error occurred in Socket closed"));
    if (lost_peer) continue;
    const bool dashes = line.size() >= 20 && line.find_first_not_of('-') == line.npos;
    if (dashes) framed = !framed;
    const bool remark = line.starts_with("mpirun: ") || line.starts_with("prterun: ");
    if (dashes || framed || remark || line.find_first_not_of(" \t\r") == line.npos) continue;
    kept.append(line).push_back('\n');
  }
  return kept;
}

// MPI_ERR_UNKNOWN: Open MPI's exit code of a rank that has lost a peer. mpirun may report it instead of the peer's.
constexpr int lost_peer_code = 14;

const bool below_mpirun = std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("PMIX_RANK");

// Set by a launcher for one rank or step. The user's settings for Open MPI (OMPI_MCA_*) are not, unless mpirun started
// this process: then mpirun has written them.
bool of_a_launcher(std::string_view name) {
  for (const char* prefix : {"SLURM", "PMI_", "PMI2_", "PMIX_", "PALS_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_"})
    if (name.starts_with(prefix)) return true;
  if (below_mpirun && (name.starts_with("OMPI_") || name.starts_with("PRTE_") || name.starts_with("ORTE_")))
    return !name.starts_with("OMPI_ALLOW_RUN_AS_ROOT");
  return name == "JOB_COMPLETION_INDEX";
}

bool of_a_supervisor(std::string_view name) {
  for (const char* own : {"ASSAY_RANK", "ASSAY_SIZE", "ASSAY_LOCAL_RANK", "ASSAY_LOCAL_SIZE", "ASSAY_CPUS",
                          "ASSAY_CPUS_BY_RANK", "ASSAY_SUPERVISOR", "ASSAY_TOKEN"})
    if (name == own) return true;
  return false;
}

Variables variables_without(bool (*left_out)(std::string_view)) {
  Variables all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != text.npos && !left_out(text.substr(0, equals)))
      all[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return all;
}

}  // namespace

Variables inherited_variables() {
  return variables_without([](std::string_view name) { return of_a_launcher(name) || of_a_supervisor(name); });
}

Variables variables_of_launcher() { return variables_without(of_a_supervisor); }

void leave_binding_of_mpirun() {
  if (!below_mpirun) return;
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  (void)::sched_setaffinity(0, sizeof all, &all);
}

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

pid_t start_process(const ProcessRequest& request) {
  std::vector<std::string> words = request.words, env;
  for (const auto& [name, value] : request.variables) env.push_back(name + "=" + value);
  const std::vector<char*> word_list = pointers(words), env_list = pointers(env);
  return fork_leader(request.words.front(), request.death_signal,
                     [&] { become(word_list.data(), env_list.data(), request); });
}

pid_t fork_process(const std::function<void()>& body) {
  return fork_leader("a question", SIGKILL, [&] {
    try {
      body();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  });
}

void kill_when_orphaned(pid_t pid) {
  constexpr int grace_ms = 1000;
  const pid_t parent = ::getpid();
  if (::fork() != 0) return;
  // This process's sockets and locks must not outlive it in this child.
  if (::close_range(0, ~0U, 0) != 0) ::_exit(0);
  ::setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  pollfd ends[2] = {{pidfd_open(pid), POLLIN, 0}, {pidfd_open(parent), POLLIN, 0}};
  if (::getppid() != parent) ends[1].fd = -1;
  while (ends[1].fd >= 0 && ::poll(ends, 2, -1) < 0 && errno == EINTR) {
  }
  if (ends[0].fd >= 0 && ::poll(ends, 1, grace_ms) == 0) pidfd_kill(ends[0].fd);
  ::_exit(0);
}

bool Child::reap() {
  int wait_status = 0;
  if (pid < 0 || status || ::waitpid(pid, &wait_status, WNOHANG) != pid) return false;
  status = wait_status;
  return true;
}

void Child::signal_group(int signal) const {
  if (pid > 0 && !status) ::kill(-pid, signal);
}

Output::Output() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("no pipe for a process: {}", std::strerror(errno)));
  fd_ = ends[0];
  writer_ = ends[1];
  ::fcntl(fd_, F_SETFL, O_NONBLOCK);
}

Output::~Output() {
  close_writer();
  if (fd_ >= 0) ::close(fd_);
}

void Output::close_writer() {
  if (writer_ >= 0) ::close(std::exchange(writer_, -1));
}

std::string Output::read() {
  std::string all;
  char block[16384];
  // Bounded, so that a process that never stops printing does not block its reader.
  while (fd_ >= 0 && all.size() < 4 * kept_output) {
    const ssize_t got = ::read(fd_, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) ::close(std::exchange(fd_, -1));  // else every poll would report it
    if (got <= 0) break;
    all.append(block, static_cast<std::size_t>(got));
  }
  keep_tail(kept_, all);
  return all;
}

void keep_tail(std::string& kept, std::string_view more) {
  kept.append(more);
  if (kept.size() > 2 * kept_output) kept.erase(0, kept.size() - kept_output);
}

std::string tail_of(const std::string& printed, std::size_t bytes) {
  std::string text = without_boilerplate(printed);
  if (text.size() > bytes) {
    text.erase(0, text.size() - bytes);
    if (const std::size_t newline = text.find('\n'); newline + 1 < text.size()) text.erase(0, newline + 1);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int pidfd_open(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
void pidfd_kill(int fd) { ::syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0); }

void adopt_orphans() {
  for (const pid_t pid : children({})) foreign_children().insert(pid);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void spare_child(pid_t pid) { foreign_children().insert(pid); }

void end_children(double seconds, const std::function<void(pid_t, int)>& reaped) {
  const Clock::time_point start = Clock::now();
  const auto& foreign = foreign_children();
  for (auto left = children(foreign); !left.empty() && seconds_since(start) < seconds; left = children(foreign)) {
    for (const pid_t child : left) ::kill(child, SIGKILL);
    for (const pid_t child : left) {
      int status = 0;
      if (::waitpid(child, &status, WNOHANG) == child) reaped(child, status);
    }
    ::poll(nullptr, 0, 2);
  }
}

int ending_signal(int wait_status, bool through_launcher) {
  if (WIFSIGNALED(wait_status)) return WTERMSIG(wait_status);
  const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
  return through_launcher && code > 128 && code < 128 + 65 ? code - 128 : 0;
}

std::string describe_status(int wait_status, bool through_launcher) {
  if (const int signal = ending_signal(wait_status, through_launcher); signal != 0) {
    const char* name = sigabbrev_np(signal);
    return fmt::format("killed by {} (signal {})", name ? fmt::format("SIG{}", name) : "a signal", signal);
  }
  const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
  if (through_launcher && code == lost_peer_code) return {};
  return code != 0 ? fmt::format("ended with code {}", code) : std::string();
}

}  // namespace assay
