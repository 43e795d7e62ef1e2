#include "cli/shell_command.h"

#include "harness/core/streams.h"
#include "harness/hosts/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

namespace assay::cli {

namespace {

constexpr std::size_t max_output = 64u << 20;

// A process that wakes a poll when it ends.
class Watch {
 public:
  explicit Watch(pid_t pid) : fd_(pidfd_open(pid)) {}
  ~Watch() {
    if (fd_ >= 0) ::close(fd_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// False if there was nothing.
bool take(Output& pipe, FinishedCommand& finished) {
  const std::string more = pipe.read();
  if (finished.whole) finished.output += more;
  if (finished.output.size() > max_output) {
    finished.whole = false;
    finished.output.clear();
  }
  return !more.empty();
}

struct Started {
  explicit Started(const CommandToRun& command)
      : pid(start_process({.words = command.words,
                           .variables = command.variables,
                           .output = output.writer(),
                           .errors = errors.writer()})),
        watch(pid) {
    output.close_writer();
    errors.close_writer();
  }

  Output output, errors;
  pid_t pid;
  Watch watch;
  int status = 0;
  FinishedCommand finished = {};
};

}  // namespace

ShellCommands::ShellCommands(double seconds_to_die)
    : seconds_to_die_(seconds_to_die),
      signals_(
          "the commands", [](const std::string& line) { say("{}\n", line); },
          [this] { end_children(seconds_to_die_, [](pid_t, int) {}); }) {
  adopt_orphans();
}

FinishedCommand ShellCommands::run(const std::string& command, Clock::time_point deadline) {
  return run({"/bin/sh", "-c", command}, variables_of_launcher(), deadline);
}

FinishedCommand ShellCommands::run(const std::vector<std::string>& words, const Variables& variables,
                                   Clock::time_point deadline) {
  return std::move(run({{words, variables}}, deadline).front());
}

std::vector<FinishedCommand> ShellCommands::run(const std::vector<CommandToRun>& commands, Clock::time_point deadline) {
  const Clock::time_point start = Clock::now();
  std::list<Started> all;
  for (const CommandToRun& command : commands) all.emplace_back(command);
  const auto left = [&] { return std::chrono::duration<double>(deadline - Clock::now()).count(); };
  const auto running = [](const Started& one) { return !one.finished.ended; };
  while (std::any_of(all.begin(), all.end(), running) && !interrupted() && left() > 0) {
    std::vector<pollfd> fds;
    double wait_ms = std::min(1e3 * left() + 1, 6e4);
    for (const Started& one : all) {
      if (!running(one)) continue;
      // Without a pidfd (older kernels) the end is only seen by asking for it.
      if (one.watch.fd() < 0) wait_ms = std::min(wait_ms, 2.0);
      for (const int fd : {one.watch.fd(), one.output.fd(), one.errors.fd()}) fds.push_back({fd, POLLIN, 0});
    }
    signals_.add_fds(fds);
    ::poll(fds.data(), fds.size(), static_cast<int>(wait_ms));
    for (Started& one : all) {
      if (!running(one)) continue;
      one.finished.ended = ::waitpid(one.pid, &one.status, WNOHANG) == one.pid;
      if (one.finished.ended) one.finished.seconds = seconds_since(start);
      take(one.output, one.finished);
      (void)one.errors.read();
    }
    signals_.read();
  }
  end_children(seconds_to_die_, [](pid_t, int) {});
  std::vector<FinishedCommand> done;
  for (Started& one : all) {
    FinishedCommand& finished = one.finished;
    while (take(one.output, finished)) {
    }
    while (!one.errors.read().empty()) {
    }
    if (!finished.whole) finished.output = one.output.kept();
    if (finished.ended && WIFEXITED(one.status)) finished.code = WEXITSTATUS(one.status);
    if (finished.ended) finished.problem = describe_status(one.status, false);
    finished.errors = tail_of(one.errors.kept(), 1000);
    done.push_back(std::move(finished));
  }
  return done;
}

void ShellCommands::wait(Clock::time_point until) {
  for (double left; !interrupted() && (left = std::chrono::duration<double>(until - Clock::now()).count()) > 0;) {
    std::vector<pollfd> fds;
    signals_.add_fds(fds);
    ::poll(fds.data(), fds.size(), static_cast<int>(std::min(1e3 * left + 1, 6e4)));
    signals_.read();
  }
}

}  // namespace assay::cli
