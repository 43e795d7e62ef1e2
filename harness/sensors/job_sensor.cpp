#include "harness/sensors/job_sensor.h"

#include "harness/sensors/series_builder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>

namespace assay {
namespace {

constexpr double list_seconds = 2.0, max_list_seconds = 10.0;
constexpr double list_share = 0.001;      // of a CPU that lists may take: they are rarer where there are many processes
constexpr double start_seconds = 1.0;     // in which every reading looks for children,
constexpr double children_seconds = 1.0;  // and from then on one in this time
constexpr double first_period_seconds = 0.01, period_seconds = 0.1, max_period_seconds = 1;
constexpr double young_seconds = 10;  // a job of this age and less is read every period_seconds at the latest,
constexpr double own_share = 0.001;   // an older one so often that reading takes this part of a CPU
constexpr std::size_t max_points = 2048;

std::string job_file(Pid pid, const char* name) { return "proc/" + std::to_string(pid) + "/" + name; }

// A line "name: 123".
std::optional<double> count_in(const std::string& text, std::string_view name) {
  const auto value = field(text, name);
  const auto number = value ? to_integer(*value) : std::nullopt;
  return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
}

void add_to(std::optional<double>& sum, const std::optional<double>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

std::optional<double> rate_of(const std::optional<double>& now, const std::optional<double>& before, double seconds) {
  if (!now || !before) return std::nullopt;
  return std::max(0.0, *now - *before) / seconds;
}

}  // namespace

JobSensor::JobSensor(Root root, Pid top) : root_(std::move(root)), top_(top), seen_{top} {
  if (const long per_second = sysconf(_SC_CLK_TCK); per_second > 0) tick_ = 1.0 / static_cast<double>(per_second);
}

bool JobSensor::add_children() {
  std::vector<Pid> unread(seen_.begin(), seen_.end());
  bool told = false;
  while (!unread.empty()) {
    const Pid pid = unread.back();
    unread.pop_back();
    const auto children = root_.text(fmt::format("proc/{0}/task/{0}/children", pid));
    told = told || children.has_value();
    for (const std::string& word : words(children.value_or("")))
      if (const auto child = to_integer(word); child && seen_.insert(*child).second) unread.push_back(*child);
  }
  return told;
}

void JobSensor::list(double seconds) {
  const Clock::time_point begin = Clock::now();
  const std::map<Pid, Process> all = read_processes(root_);
  std::erase_if(seen_, [&](Pid pid) { return !all.contains(pid); });
  seen_.insert(top_);
  // A child may have a smaller number than its parent, so go on until nothing is added.
  for (std::size_t before = 0; before != seen_.size();) {
    before = seen_.size();
    for (const auto& [pid, process] : all)
      if (seen_.contains(process.parent)) seen_.insert(pid);
  }
  next_list_ = seconds + std::max(std::clamp((seconds - first_) / 5, list_seconds, max_list_seconds),
                                  seconds_since(begin) / list_share);
}

void JobSensor::read(double seconds, std::vector<Reading>& readings) {
  if (first_ < 0) first_ = seconds;
  // Children that a process's main thread has started are found cheaply, where the kernel tells them; all others, and
  // those whose parent has ended, by a list of all processes.
  const bool children = seconds - first_ < start_seconds || seconds >= next_children_;
  if (children) next_children_ = seconds + children_seconds;
  if (seconds >= next_list_ || (children && !add_children())) list(seconds);
  Totals now;
  now.seconds = seconds;
  JobUse use;
  double memory = 0, largest_shared = 0;
  for (const Pid pid : seen_) {
    const auto process = read_process(root_, pid);
    if (!process) continue;
    ++use.processes;
    use.threads += process->threads;
    use.system += tick_ * static_cast<double>(process->system + process->children_system);
    use.user +=
        tick_ * static_cast<double>(process->ticks - process->system + process->children - process->children_system);
    if (const auto io = root_.text(job_file(pid, "io"))) {
      add_to(now.read, count_in(*io, "read_bytes"));
      add_to(now.written, count_in(*io, "write_bytes"));
    }
    if (process->state == 'Z') continue;
    const auto pages = words(root_.text(job_file(pid, "statm")).value_or(""));
    if (pages.size() < 3) continue;
    const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
    const double resident = page * static_cast<double>(to_integer(pages[1]).value_or(0));
    const double shared = page * static_cast<double>(to_integer(pages[2]).value_or(0));
    memory += resident - shared;
    largest_shared = std::max(largest_shared, shared);
  }
  memory += largest_shared;
  // What a process used that ended without being waited for is not lost again.
  use_.user = std::max(use_.user, use.user), use_.system = std::max(use_.system, use.system);
  if (now.read) use_.read = std::max(use_.read.value_or(0), *now.read);
  if (now.written) use_.written = std::max(use_.written.value_or(0), *now.written);
  use_.threads = std::max(use_.threads, use.threads);
  use_.processes = std::max(use_.processes, use.processes);
  now.cpu = use_.cpu_seconds(), now.read = use_.read, now.written = use_.written;
  if (memory > 0) {
    use_.peak_memory = std::max(use_.peak_memory.value_or(0), memory);
    // Readings have unequal distances: each counts for the time since the one before.
    const double time = memory_read_ ? seconds - *memory_read_ : 0;
    memory_read_ = seconds;
    memory_sum_ += memory * time, memory_time_ += time;
    use_.mean_memory = memory_time_ > 0 ? memory_sum_ / memory_time_ : memory;
    readings.push_back({"job_memory", "B", Reading::Kind::level, memory});
    readings.push_back({"job_threads", "1", Reading::Kind::level, static_cast<double>(use.threads)});
  }
  // CPU time is counted in ticks, so a rate over less than five of them says nothing.
  if (last_ && seconds - last_->seconds < 5 * tick_) return;
  if (last_) {
    const double elapsed = seconds - last_->seconds;
    readings.push_back({"job_cpu", "1", Reading::Kind::rate, (now.cpu - last_->cpu) / elapsed});
    readings.push_back({"job_read", "B/s", Reading::Kind::rate, rate_of(now.read, last_->read, elapsed)});
    readings.push_back({"job_written", "B/s", Reading::Kind::rate, rate_of(now.written, last_->written, elapsed)});
  }
  last_ = now;
}

struct JobWatch::State {
  State(Root root, Pid top, Clock::time_point from) : sensor(std::move(root), top), origin(from), builder(max_points) {}

  void sample() {
    readings.clear();
    const double seconds = seconds_since(origin);
    sensor.read(seconds, readings);
    for (const Reading& one : readings) builder.add(seconds, one);
  }

  void run() {
    double period = first_period_seconds;
    std::unique_lock lock(mutex);
    while (!stopping) {
      const double before = seconds_on(CLOCK_THREAD_CPUTIME_ID);
      sample();
      const double rare = (seconds_on(CLOCK_THREAD_CPUTIME_ID) - before) / own_share;
      const auto pause = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(period));
      wake.wait_for(lock, pause, [&] { return stopping; });
      const bool young = seconds_since(origin) < young_seconds;
      period = std::min(1.3 * period, young ? period_seconds : std::clamp(rare, period_seconds, max_period_seconds));
    }
    sample();
    own_cpu_seconds = seconds_on(CLOCK_THREAD_CPUTIME_ID);
  }

  JobSensor sensor;
  Clock::time_point origin;
  SeriesBuilder builder;
  std::vector<Reading> readings;
  mutable std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  double own_cpu_seconds = 0;
  std::thread thread;
};

JobWatch::JobWatch(Root root, Pid top, Clock::time_point origin)
    : state_(std::make_unique<State>(std::move(root), top, origin)) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

JobWatch::~JobWatch() {
  if (state_->thread.joinable()) stop();
}

JobWatch::Watched JobWatch::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_one();
  if (state_->thread.joinable()) state_->thread.join();
  return {state_->sensor.use(), state_->builder.take(), state_->own_cpu_seconds};
}

JobUse JobWatch::so_far() const {
  const std::lock_guard lock(state_->mutex);
  return state_->sensor.use();
}

}  // namespace assay
