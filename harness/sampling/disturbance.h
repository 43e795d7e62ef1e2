// Short disturbances of a sample on a CPU: time off the CPU, involuntary switches, migrations, faults, steal.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace assay {

// Events by which the system may have disturbed this process during one sample.
struct Disturbance {
  double wall_seconds = 0;
  double off_cpu_seconds = 0;     // wall time minus the measuring thread's CPU time
  std::int64_t involuntary = 0;   // involuntary context switches of all threads of the process
  std::int64_t major_faults = 0;  // page faults that read from disk
  bool migrated = false;          // the measuring thread ended on another CPU
  bool stolen = false;            // steal was reported, and this is the slowest sample since the last report
};

// Indices of the disturbed samples. Waiting and switches that every sample has belong to the case: a sample is
// disturbed if it has more than the median (for time off the CPU: by 5 % of a sample, and at least 20 us).
std::vector<int> disturbed_samples(std::span<const Disturbance> samples);

// Reads the counters around each sample, outside its timed region: three system calls at each end.
class DisturbanceWatch {
 public:
  void before();
  void after();
  const std::vector<Disturbance>& samples() const { return samples_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Reading {
    Clock::time_point wall;
    double cpu_seconds = 0;
    std::int64_t involuntary = 0;
    std::int64_t major_faults = 0;
    int cpu = -1;
  };
  static Reading read();
  void mark_stolen(Clock::time_point now);

  Reading before_;
  std::vector<Disturbance> samples_;
  Clock::time_point steal_read_{};
  std::int64_t steal_ticks_ = -1;
  std::size_t since_steal_ = 0;  // the first sample after the last reading of steal
};

}  // namespace assay
