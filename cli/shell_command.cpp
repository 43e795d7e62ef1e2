#include "cli/shell_command.h"

#include "harness/hosts/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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

}  // namespace

ShellCommands::ShellCommands(double seconds_to_die)
    : seconds_to_die_(seconds_to_die),
      signals_(
          "the commands", [](const std::string& line) { fmt::print(stderr, "{}\n", line); },
          [this] { end_children(seconds_to_die_, [](pid_t, int) {}); }) {
  adopt_orphans();
}

FinishedCommand ShellCommands::run(const std::string& command, Clock::time_point deadline) {
  return run({"/bin/sh", "-c", command}, variables_of_launcher(), deadline);
}

FinishedCommand ShellCommands::run(const std::vector<std::string>& words, const Variables& variables,
                                   Clock::time_point deadline) {
  Output output, errors;
  const Clock::time_point start = Clock::now();
  const pid_t shell =
      start_process({.words = words, .variables = variables, .output = output.writer(), .errors = errors.writer()});
  const Watch watch(shell);
  output.close_writer();
  errors.close_writer();
  FinishedCommand finished;
  int status = 0;
  const auto left = [&] { return std::chrono::duration<double>(deadline - Clock::now()).count(); };
  while (!finished.ended && !interrupted() && left() > 0) {
    // Without a pidfd (older kernels) the end is only seen by asking for it.
    const int wait_ms = watch.fd() >= 0 ? static_cast<int>(std::min(1e3 * left() + 1, 6e4)) : 2;
    std::vector<pollfd> fds{{watch.fd(), POLLIN, 0}, {output.fd(), POLLIN, 0}, {errors.fd(), POLLIN, 0}};
    signals_.add_fds(fds);
    ::poll(fds.data(), fds.size(), wait_ms);
    finished.ended = ::waitpid(shell, &status, WNOHANG) == shell;
    if (finished.ended) finished.seconds = seconds_since(start);
    take(output, finished);
    (void)errors.read();
    signals_.read();
  }
  end_children(seconds_to_die_, [](pid_t, int) {});
  while (take(output, finished)) {
  }
  while (!errors.read().empty()) {
  }
  if (!finished.whole) finished.output = output.kept();
  if (finished.ended && WIFEXITED(status)) finished.code = WEXITSTATUS(status);
  if (finished.ended) finished.problem = describe_status(status, false);
  finished.errors = tail_of(errors.kept(), 1000);
  return finished;
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
