#include "harness/sampling/disturbance.h"

#include "harness/statistics/statistics.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace assay {

namespace {

// Steal is counted in ticks of 10 ms, and reading it costs tens of microseconds: read it no more often than this.
constexpr std::chrono::milliseconds steal_period{50};

// Ticks stolen from the whole machine since it booted; -1 if the kernel does not report them.
std::int64_t stolen_ticks() {
  char text[256] = {};
  const int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t bytes = ::read(file, text, sizeof text - 1);
  close(file);
  long long stolen = 0;
  if (bytes <= 0 || std::sscanf(text, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &stolen) != 1) return -1;
  return stolen;
}

}  // namespace

std::vector<int> disturbed_samples(std::span<const Disturbance> samples) {
  std::vector<int> disturbed;
  if (samples.empty()) return disturbed;
  const auto usual = [&](auto value_of) {
    std::vector<double> values;
    values.reserve(samples.size());
    for (const Disturbance& sample : samples) values.push_back(static_cast<double>(value_of(sample)));
    return median(values);
  };
  const double wall = usual([](const Disturbance& s) { return s.wall_seconds; });
  const double off = usual([](const Disturbance& s) { return s.off_cpu_seconds; }) + std::max(0.05 * wall, 20e-6);
  const double switches = usual([](const Disturbance& s) { return s.involuntary; });
  const double faults = usual([](const Disturbance& s) { return s.major_faults; });
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Disturbance& s = samples[i];
    if (s.off_cpu_seconds > off || static_cast<double>(s.involuntary) > switches ||
        static_cast<double>(s.major_faults) > faults || s.migrated || s.stolen)
      disturbed.push_back(static_cast<int>(i));
  }
  return disturbed;
}

DisturbanceWatch::Reading DisturbanceWatch::read() {
  Reading reading;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    reading.involuntary = usage.ru_nivcsw;
    reading.major_faults = usage.ru_majflt;
  }
  reading.cpu = sched_getcpu();
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  reading.cpu_seconds = static_cast<double>(cpu.tv_sec) + 1e-9 * static_cast<double>(cpu.tv_nsec);
  reading.wall = Clock::now();
  return reading;
}

void DisturbanceWatch::before() {
  if (steal_ticks_ < 0 && samples_.empty()) {
    steal_ticks_ = stolen_ticks();
    steal_read_ = Clock::now();
  }
  before_ = read();
}

void DisturbanceWatch::after() {
  const Reading now = read();
  Disturbance sample;
  sample.wall_seconds = std::chrono::duration<double>(now.wall - before_.wall).count();
  sample.off_cpu_seconds = sample.wall_seconds - (now.cpu_seconds - before_.cpu_seconds);
  sample.involuntary = now.involuntary - before_.involuntary;
  sample.major_faults = now.major_faults - before_.major_faults;
  sample.migrated = now.cpu != before_.cpu;
  samples_.push_back(sample);
  if (steal_ticks_ >= 0 && now.wall - steal_read_ >= steal_period) mark_stolen(now.wall);
}

void DisturbanceWatch::mark_stolen(Clock::time_point now) {
  const std::int64_t ticks = stolen_ticks();
  if (ticks > steal_ticks_) {
    const auto first = samples_.begin() + static_cast<std::ptrdiff_t>(since_steal_);
    std::max_element(first, samples_.end(), [](const Disturbance& a, const Disturbance& b) {
      return a.wall_seconds < b.wall_seconds;
    })->stolen = true;
  }
  steal_ticks_ = std::max(ticks, steal_ticks_);
  steal_read_ = now;
  since_steal_ = samples_.size();
}

}  // namespace assay
