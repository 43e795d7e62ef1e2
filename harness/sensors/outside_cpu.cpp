#include "harness/sensors/outside_cpu.h"

#include "harness/core/host.h"
#include "harness/device/cpu/cpu_list.h"
#include "harness/device/cpu/limits.h"

#include <unistd.h>

#include <algorithm>

namespace assay {
namespace {

constexpr double notable = 0.05;            // CPUs
constexpr double min_seconds = 0.05;        // 5 ticks
constexpr double min_list_seconds = 1.0;    // between two lists of all processes
constexpr std::size_t max_readings = 4096;  // 17 minutes at 4 Hz; older ones are thinned
constexpr std::size_t max_named = 5;

}  // namespace

OutsideCpuSensor::OutsideCpuSensor(Root root, std::vector<int> cpus) : root_(std::move(root)), cpus_(std::move(cpus)) {
  if (const long per_second = sysconf(_SC_CLK_TCK); per_second > 0) tick_ = 1.0 / static_cast<double>(per_second);
}

void OutsideCpuSensor::begin() {
  listed_.clear();
  counted_.clear();
  uses_.clear();
  names_.clear();
}

std::optional<OutsideCpuSensor::Counters> OutsideCpuSensor::count(double seconds) const {
  const auto ticks = cpu_ticks(root_, cpus_);
  if (!ticks) return std::nullopt;
  std::int64_t own = 0;
  for (const Pid pid : run_)
    if (const auto process = read_process(root_, pid)) own += process->ticks + process->children;
  return Counters{seconds, tick_ * static_cast<double>(ticks->busy - ticks->steal - own),
                  tick_ * static_cast<double>(ticks->steal), cpu::throttled_cpu_seconds(root_.path())};
}

void OutsideCpuSensor::read(double seconds, std::vector<Reading>& readings) {
  if (listed_.empty()) list(seconds);
  auto now = count(seconds);
  if (!now) return;
  if (!counted_.empty()) {
    const double elapsed = seconds - counted_.back().seconds;
    if (elapsed < min_seconds) return;
    const double cpus = std::max(0.0, (now->busy - counted_.back().busy) / elapsed);
    readings.push_back({"outside_cpu", "1", Reading::Kind::rate, cpus});
    if (cpus >= notable && seconds - listed_at_ >= min_list_seconds) {
      list(seconds);
      // A process that the run has started since the last list is now seen as its own.
      if (const auto again = count(seconds)) now = again;
    }
  }
  counted_.push_back(*now);
  if (counted_.size() < max_readings) return;
  for (std::size_t i = 0; 2 * i < counted_.size(); ++i) counted_[i] = counted_[2 * i];
  counted_.resize((counted_.size() + 1) / 2);
}

void OutsideCpuSensor::list(double seconds) {
  std::map<Pid, Process> now = read_processes(root_);
  run_ = run_of_this_process(root_, now);
  if (!listed_.empty()) {
    Use use{listed_at_, seconds, {}};
    // What a child had used before it ended is its parent's from then on, and has been counted.
    std::map<Pid, std::int64_t> counted_for;
    for (const auto& [pid, process] : listed_)
      if (!now.contains(pid)) counted_for[process.parent] += process.ticks + process.children;
    for (const auto& [pid, process] : now) {
      if (run_.contains(pid) || process.kernel) continue;
      const auto before = listed_.find(pid);
      const Process start = before == listed_.end() ? Process{} : before->second;
      const std::int64_t ended = std::max<std::int64_t>(0, process.children - start.children - counted_for[pid]);
      const double used = tick_ * static_cast<double>(process.ticks - start.ticks + ended);
      if (used <= 0) continue;
      use.seconds[pid] = used;
      names_[pid] = process.name;
    }
    uses_.push_back(std::move(use));
  }
  listed_ = std::move(now);
  listed_at_ = seconds;
}

bool OutsideCpuSensor::may_use_our_cpus(Pid pid) const {
  const auto status = root_.text("proc/" + std::to_string(pid) + "/status");
  const auto allowed = status ? field(*status, "Cpus_allowed_list") : std::nullopt;
  if (!allowed || cpus_.empty()) return true;
  const std::vector<int> its = cpu_list(*allowed);
  return std::find_first_of(its.begin(), its.end(), cpus_.begin(), cpus_.end()) != its.end();
}

std::optional<OutsideCpu> OutsideCpuSensor::in_window(double from, double to) {
  // The readings around the window.
  const Counters *first = nullptr, *last = nullptr;
  for (const Counters& counters : counted_) {
    if (!first || counters.seconds <= from) first = &counters;
    if (!last || last->seconds < to) last = &counters;
  }
  if (!first || last->seconds - first->seconds < min_seconds) return std::nullopt;
  const double seconds = last->seconds - first->seconds;
  OutsideCpu outside;
  outside.host = this_host();
  outside.usable = static_cast<int>(cpus_.size());
  outside.seconds = seconds;
  outside.cpus = std::max(0.0, (last->busy - first->busy) / seconds);
  outside.steal = std::max(0.0, (last->steal - first->steal) / seconds);
  if (first->throttled && last->throttled)
    outside.throttled = std::max(0.0, (*last->throttled - *first->throttled) / seconds);
  if (outside.cpus < notable) return outside;
  if (counted_.back().seconds > listed_at_) list(counted_.back().seconds);
  std::map<Pid, double> used;
  double listed_seconds = 0;
  for (const Use& use : uses_) {
    if (use.to <= first->seconds || use.from >= last->seconds) continue;
    listed_seconds += use.to - use.from;
    for (const auto& [pid, its] : use.seconds) used[pid] += its;
  }
  for (const auto& [pid, its] : used)
    if (const double cpus = its / listed_seconds; cpus >= notable && may_use_our_cpus(pid))
      outside.processes.push_back({pid, names_.at(pid), cpus});
  std::ranges::sort(outside.processes, [](const auto& a, const auto& b) { return a.cpus > b.cpus; });
  if (outside.processes.size() > max_named) outside.processes.resize(max_named);
  return outside;
}

}  // namespace assay
