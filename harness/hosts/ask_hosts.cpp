#include "harness/hosts/ask_hosts.h"

#include "harness/core/error.h"
#include "harness/core/program.h"
#include "harness/core/text.h"
#include "harness/hosts/agent_starter.h"
#include "harness/hosts/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

namespace assay {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t max_at_once = 64;
constexpr std::size_t stderr_bytes = 400;
constexpr int shell_failed = 255;  // ssh's code if it could not run the command
// From SIGTERM to SIGKILL: `timeout` passes the first on, and kills what ignores it after a second.
constexpr double grace_seconds = 2;
// Of a process that ended, for descendants that still hold its pipes.
constexpr double drain_seconds = 0.5;

// The process that asks one host.
class Asked {
 public:
  Asked(ProcessRequest request, bool by_shell, double timeout_seconds)
      : by_shell_(by_shell), timeout_(timeout_seconds), started_(Clock::now()) {
    request.output = out_.writer();
    request.errors = err_.writer();
    request.death_signal = SIGTERM;  // so that a shell can end what it started
    pid_ = start_process(request);
    out_.close_writer();
    err_.close_writer();
  }
  ~Asked() {
    if (pid_ < 0) return;
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  void add_fds(std::vector<pollfd>& fds) const {
    for (const Output* pipe : {&out_, &err_})
      if (pipe->fd() >= 0) fds.push_back({pipe->fd(), POLLIN, 0});
  }

  // Takes what has come, and ends the process when it must. Whether it is over.
  bool advance() {
    const std::string more = out_.read();
    (void)err_.read();
    if (why_not_.empty() && text_.size() + more.size() > max_answer_bytes)
      give_up(fmt::format("printed more than {} MiB", max_answer_bytes >> 20));
    if (why_not_.empty()) text_ += more;
    if (pid_ >= 0) {
      if (why_not_.empty() && since(started_) > timeout_) give_up(fmt::format("no answer within {:g} s", timeout_));
      if (given_up_ && since(*given_up_) > grace_seconds) ::kill(-pid_, SIGKILL);
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
      ::kill(-pid_, SIGKILL);  // whatever it left in its group
      pid_ = -1;
      status_ = status;
      ended_ = Clock::now();
    }
    return (out_.fd() < 0 && err_.fd() < 0) || since(ended_) > drain_seconds;
  }
  bool given_up() const { return given_up_.has_value(); }

  void answer(HostAnswer& to) const {
    to.err = tail_of(err_.kept(), stderr_bytes);
    const std::string signal = WIFEXITED(status_) ? "" : describe_status(status_, false);
    if (!why_not_.empty()) {
      to.err = to.err.empty() ? why_not_ : fmt::format("{}: {}", why_not_, one_line(to.err));
    } else if (!signal.empty()) {
      to.err = to.err.empty() ? signal : fmt::format("{}: {}", signal, one_line(to.err));
    } else if (by_shell_ && WEXITSTATUS(status_) == shell_failed) {
      to.err = to.err.empty() ? "the remote shell failed" : one_line(to.err);
    } else {
      to.exit_code = WEXITSTATUS(status_);
      to.out = text_;
    }
  }

 private:
  static double since(Clock::time_point moment) { return Seconds(Clock::now() - moment).count(); }
  void give_up(std::string why) {
    why_not_ = std::move(why);
    text_.clear();
    given_up_ = Clock::now();
    if (pid_ >= 0) ::kill(-pid_, SIGTERM);
  }

  bool by_shell_;
  double timeout_;
  Clock::time_point started_, ended_;
  std::optional<Clock::time_point> given_up_;
  Output out_, err_;
  pid_t pid_ = -1;
  int status_ = 0;
  std::string text_, why_not_;
};

std::unique_ptr<Asked> ask(const Allocation& allocation, const AllocatedHost& host,
                           const std::vector<std::string>& words, double timeout_seconds) {
  const std::string binary = program_command().string();
  ProcessRequest request;
  request.variables = inherited_variables();
  bool by_shell = false;
  if (host.here) {
    request.words = {binary};
    request.variables["ASSAY_HOST"] = host.name;
    request.words.insert(request.words.end(), words.begin(), words.end());
  } else if (allocation.source == LaunchSource::slurm) {
    const std::string srun = find_program("srun");
    if (srun.empty()) throw UsageError("a Slurm job of several nodes needs srun, which is not in PATH");
    // --overlap: this process may be inside a step already.
    request.words = {srun,         "--overlap", "--nodes",         "1",           "--ntasks", "1",
                     "--nodelist", host.name,   "--cpu-bind=none", "--export=ALL"};
    request.variables = variables_of_launcher();
    request.variables["ASSAY_HOST"] = host.name;
    request.words.push_back(binary);
    request.words.insert(request.words.end(), words.begin(), words.end());
  } else {
    by_shell = true;
    request.words = remote_shell_words();
    if (!host.user.empty()) request.words.insert(request.words.end(), {"-l", host.user});
    request.words.insert(request.words.end(), {host.name, asked_command(binary, words, host.name, timeout_seconds)});
  }
  return std::make_unique<Asked>(std::move(request), by_shell, timeout_seconds);
}

}  // namespace

std::string asked_command(const std::string& binary, const std::vector<std::string>& words, const std::string& host,
                          double timeout_seconds) {
  std::string line = fmt::format("t=$(command -v timeout) && t=\"$t -k 1 {:.0f}\"; exec env ASSAY_HOST={} $t {}",
                                 std::ceil(timeout_seconds), shell_word(host), shell_word(binary));
  for (const std::string& word : words) line += " " + shell_word(word);
  return "exec sh -c " + shell_word(line);
}

std::vector<HostAnswer> ask_hosts(const Allocation& allocation, const std::vector<std::string>& words,
                                  double timeout_seconds) {
  if (allocation.source == LaunchSource::environment)
    throw UsageError(
        fmt::format("{}: hosts that start themselves cannot be asked; name them in --hostfile", allocation.origin));
  std::vector<HostAnswer> answers(allocation.hosts.size());
  for (std::size_t i = 0; i < answers.size(); ++i) answers[i].host = allocation.hosts[i].name;
  adopt_orphans();  // what a given-up shell leaves becomes a child of this process, and is ended below
  std::vector<std::pair<std::size_t, std::unique_ptr<Asked>>> open;
  bool given_up = false;
  for (std::size_t next = 0; next < answers.size() || !open.empty();) {
    for (; next < answers.size() && open.size() < max_at_once; ++next)
      open.emplace_back(next, ask(allocation, allocation.hosts[next], words, timeout_seconds));
    std::vector<pollfd> fds;
    for (const auto& [index, asked] : open) asked->add_fds(fds);
    ::poll(fds.data(), fds.size(), 20);
    std::erase_if(open, [&](const auto& one) {
      if (!one.second->advance()) return false;
      one.second->answer(answers[one.first]);
      given_up = given_up || one.second->given_up();
      return true;
    });
  }
  if (given_up) end_children(grace_seconds, [](pid_t, int) {});
  return answers;
}

}  // namespace assay
