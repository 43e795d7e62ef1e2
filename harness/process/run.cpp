// One loop for all processes that are run to their end.
#include "harness/process/run.h"

#include "harness/core/files.h"
#include "harness/core/streams.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <map>
#include <utility>

namespace assay {

namespace {

constexpr double max_wait_seconds = 60;
constexpr double drain_seconds = 0.5;  // for descendants that still hold the pipes of a process that has ended

void poll_for(std::vector<pollfd>& fds, double seconds) {
  ::poll(fds.data(), fds.size(), static_cast<int>(std::ceil(1e3 * std::clamp(seconds, 0.0, max_wait_seconds))));
}

// One process, from its start until it is over: it has ended and is silent, or is given up.
class Running {
 public:
  // `alone`: nobody else ends what it leaves.
  Running(const ProcessRun& run, bool alone) : run_(run), alone_(alone) {
    ProcessRequest request = run.process;
    if (request.output < 0) request.output = output_.writer();
    if (request.errors < 0 && !run.merged) request.errors = errors_.writer();
    enter(Phase::running, run.limit_seconds);
    child_.pid = run.body ? fork_process([&] { run.body(output_.writer()); }) : start_process(request);
    end_ = Descriptor(pidfd_open(child_.pid));
    output_.close_writer();
    errors_.close_writer();
    if (run.on_start) run.on_start(child_.pid);
  }
  ~Running() {
    constexpr int max_tries = 500;
    if (phase_ > Phase::asked_to_end) return;
    child_.signal_group(SIGKILL);  // after an exception
    for (int i = 0; i < max_tries && !child_.reap(); ++i) ::poll(nullptr, 0, 2);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  bool over() const { return phase_ == Phase::over; }

  // Lowers `seconds` to when advance() has something to do even if nothing comes.
  void wait_for(std::vector<pollfd>& fds, double& seconds) const {
    if (over()) return;
    const bool runs = phase_ < Phase::ended;
    for (const int fd : {runs ? static_cast<int>(end_) : -1, output_.fd(), errors_.fd()})
      fds.push_back({fd, POLLIN, 0});
    seconds = std::min({seconds, left(), runs && end_ < 0 ? 0.002 : max_wait_seconds});
  }

  void advance(bool interrupted) {
    if (phase_ < Phase::ended && has_ended()) enter(Phase::ended, alone_ ? drain_seconds : 0);
    take();
    if (phase_ == Phase::running && (interrupted || left() <= 0))
      stop(interrupted ? Stopped::interrupted : Stopped::late);
    else if (phase_ == Phase::asked_to_end && left() <= 0)
      kill();
    else if (phase_ >= Phase::killed && left() <= 0)
      phase_ = Phase::over;
    if (phase_ == Phase::ended && output_.fd() < 0 && errors_.fd() < 0) phase_ = Phase::over;
  }

  FinishedProcess finish() {
    take();
    if (!finished_.whole) finished_.output = output_.kept();
    finished_.errors = errors_.kept();
    if (finished_.ended() && child_.status) {
      if (WIFEXITED(*child_.status)) finished_.code = WEXITSTATUS(*child_.status);
      finished_.signal = ending_signal(*child_.status, false);
      finished_.problem = describe_status(*child_.status, false);
    } else if (finished_.ended()) {
      finished_.problem = "ended, but its exit code is lost";  // SIGCHLD is ignored
    }
    return std::move(finished_);
  }

 private:
  enum class Phase { running, asked_to_end, killed, ended, over };

  void enter(Phase phase, double seconds) {
    phase_ = phase;
    limit_seconds_ = seconds;
    entered_ = Clock::now();
  }
  double left() const { return limit_seconds_ - seconds_since(entered_); }

  void take() {
    const std::string more = output_.read(), errors = errors_.read();
    if (run_.on_errors && !errors.empty()) run_.on_errors(errors);
    if (run_.on_output && !more.empty()) run_.on_output(more);
    if (run_.on_output || !finished_.whole) return;
    finished_.output += more;
    if (finished_.output.size() <= run_.max_output) return;
    finished_.whole = false;
    finished_.output.clear();
    if (run_.ends_beyond) stop(Stopped::too_long);
  }

  // Until it is reaped, no other process group has its number.
  bool has_ended() {
    siginfo_t info{};
    const bool lost = ::waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0;
    if (!lost && info.si_pid == 0) return false;
    finished_.seconds = seconds_since(start_);
    if (lost) return true;
    if (run_.on_end && finished_.ended()) run_.on_end(child_.pid);
    child_.signal_group(SIGKILL);
    return child_.reap();
  }

  void stop(Stopped why) {
    if (finished_.ended()) finished_.stopped = why;
    if (phase_ != Phase::running) return;
    if (run_.grace_seconds <= 0) return kill();
    child_.signal_group(SIGTERM);
    enter(Phase::asked_to_end, run_.grace_seconds);
  }

  void kill() {
    child_.signal_group(SIGKILL);
    enter(Phase::killed, alone_ ? run_.death_seconds : 0);
  }

  const ProcessRun& run_;
  bool alone_;
  Output output_, errors_;
  Child child_;
  Descriptor end_;  // can be read when the process ends; none with older kernels
  Clock::time_point start_ = Clock::now(), entered_;
  Phase phase_ = Phase::running;
  double limit_seconds_ = 0;  // of the phase
  FinishedProcess finished_;
};

// What a process that ends with its children does besides.
struct Watch {
  EndSignals& signals;
  const std::function<void()>& idle;
  double death_seconds;
};

std::vector<FinishedProcess> run_to_end(const std::vector<ProcessRun>& runs, std::size_t at_once, Watch* watch) {
  std::vector<FinishedProcess> finished(runs.size());
  std::map<std::size_t, Running> open;
  for (std::size_t next = 0; next < runs.size() || !open.empty();) {
    const bool starts = next < runs.size() && open.size() < at_once;
    for (; next < runs.size() && open.size() < at_once; ++next) open.try_emplace(next, runs[next], watch == nullptr);
    std::vector<pollfd> fds;
    double seconds = watch && watch->idle ? 0.5 : max_wait_seconds;
    for (const auto& [index, one] : open) one.wait_for(fds, seconds);
    if (starts && watch && watch->signals.interrupted()) seconds = 0;  // the signal was read before: nothing will come
    if (watch) watch->signals.add_fds(fds);
    poll_for(fds, seconds);
    if (watch) watch->signals.read();
    if (watch && watch->idle) watch->idle();
    for (auto& [index, one] : open) one.advance(watch && watch->signals.interrupted());
    if (watch) {
      if (!std::ranges::all_of(open, [](const auto& one) { return one.second.over(); })) continue;
      end_children(watch->death_seconds, [](pid_t, int) {});
    }
    for (auto& [index, one] : open)
      if (one.over()) finished[index] = one.finish();
    std::erase_if(open, [](const auto& one) { return one.second.over(); });
  }
  return finished;
}

}  // namespace

FinishedProcess run_process(const ProcessRun& run) { return std::move(run_processes({run}).front()); }

std::vector<FinishedProcess> run_processes(const std::vector<ProcessRun>& runs, std::size_t at_once) {
  return run_to_end(runs, at_once, nullptr);
}

Children::Children(const std::string& ends, double death_seconds, std::function<void()> idle)
    : death_seconds_(death_seconds),
      idle_(std::move(idle)),
      signals_(
          ends, [](const std::string& line) { say("{}\n", line); },
          [this] { end_children(death_seconds_, [](pid_t, int) {}); }) {
  adopt_orphans();
}

FinishedProcess Children::run(const ProcessRun& run) { return std::move(run_all({run}).front()); }

std::vector<FinishedProcess> Children::run_all(const std::vector<ProcessRun>& runs) {
  Watch watch{signals_, idle_, death_seconds_};
  return run_to_end(runs, runs.size(), &watch);
}

void Children::wait(Clock::time_point until) {
  for (double left; !interrupted() && (left = std::chrono::duration<double>(until - Clock::now()).count()) > 0;) {
    std::vector<pollfd> fds;
    signals_.add_fds(fds);
    poll_for(fds, left);
    signals_.read();
  }
}

}  // namespace assay
