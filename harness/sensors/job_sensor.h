// What the processes of a job use: a command that Assay starts, and all that it starts.
#pragma once

#include "harness/core/clock.h"
#include "harness/machine/processes.h"
#include "harness/record/metric.h"
#include "harness/sensors/sensors.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay {

// Of all processes of the job together, from its start.
struct JobUse {
  double user = 0, system = 0;          // CPU seconds
  std::optional<double> read, written;  // bytes from and to storage; absent where the kernel does not tell
  std::optional<double> peak_memory;    // B; absent if the job ended before its first reading
  std::optional<double> mean_memory;    // B, over the time between readings
  std::int64_t threads = 0;             // most at one time
  std::int64_t processes = 0;           // most at one time

  double cpu_seconds() const { return user + system; }
};

// Series "job_cpu" (CPUs in use since the last reading, 1), "job_memory" (B), "job_read", "job_written" (B/s) and
// "job_threads" (1). Each reading costs three files per process of the job; all processes of the machine are listed
// every two seconds, later every ten, and more rarely where that takes long; the children of the job's processes are
// looked for every second, and at every reading in its first. Memory
// counts pages that several processes share once in each process that has touched them, less what files and shared
// memory back in all but the largest. Not counted is what a process used that neither was seen nor was waited for.
class JobSensor : public Sensor {
 public:
  // `top` is the job's first process.
  JobSensor(Root root, Pid top);
  void read(double seconds, std::vector<Reading>& readings) override;
  // At the last reading.
  const JobUse& use() const { return use_; }

 private:
  struct Totals {
    double seconds = 0, cpu = 0;
    std::optional<double> read, written;
  };
  void list(double seconds);
  // Those that main threads have started; whether the kernel tells any.
  bool add_children();

  Root root_;
  Pid top_;
  double tick_ = 0.01;  // s
  double first_ = -1;   // when it was first read
  double next_list_ = -1e9, next_children_ = -1e9;
  std::set<Pid> seen_;
  std::optional<Totals> last_;
  std::optional<double> memory_read_;        // when
  double memory_sum_ = 0, memory_time_ = 0;  // B s, s
  JobUse use_;
};

// Reads a job's sensor on a thread of its own, ten times a second; more often at the job's start, and after ten seconds
// so often, at least once a second, that this takes 0.1 % of a CPU.
class JobWatch {
 public:
  // `origin` is what the times of the series count from.
  JobWatch(Root root, Pid top, Clock::time_point origin);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  struct Watched {
    JobUse use;
    std::map<std::string, Series> series;
    double own_cpu_seconds = 0;  // that watching took
  };
  // Reads once more: call it while the first process is not reaped yet, so that its whole use is known.
  Watched stop();
  // As of the last reading.
  JobUse so_far() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay
