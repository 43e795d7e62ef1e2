// CPU time that a run did not get: used by others, stolen, or held back by a quota.
#pragma once

#include "harness/machine/processes.h"
#include "harness/record/record.h"
#include "harness/sensors/sensors.h"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace assay {

// Series "outside_cpu" (1): CPUs that processes outside the run used since the last reading, of `cpus`: all CPUs that
// ranks on this host may use. Each reading costs /proc/stat and one file per process of the run. All processes are
// listed when a case begins and ends, and at most once a second while others use at least 5 % of a CPU.
class OutsideCpuSensor : public Sensor {
 public:
  OutsideCpuSensor(Root root, std::vector<int> cpus);
  void begin() override;
  void read(double seconds, std::vector<Reading>& readings) override;
  // In [from, to] of the case, in seconds as given to read(); between the readings around it. Absent if these are less
  // than 50 ms apart: the kernel counts in ticks of 10 ms. Lists all processes once more.
  std::optional<OutsideCpu> in_window(double from, double to);

 private:
  struct Counters {
    double seconds = 0;
    double busy = 0;  // CPU time of all processes but the run's since boot, in s
    double steal = 0;
    std::optional<double> throttled;
  };
  // CPU time of processes outside the run between two lists, in s.
  struct Use {
    double from = 0, to = 0;
    std::map<Pid, double> seconds;
  };
  std::optional<Counters> count(double seconds) const;
  void list(double seconds);
  bool may_use_our_cpus(Pid pid) const;

  Root root_;
  std::vector<int> cpus_;
  double tick_ = 0.01;  // s
  std::set<Pid> run_;
  std::map<Pid, Process> listed_;
  double listed_at_ = 0;
  std::vector<Counters> counted_;
  std::vector<Use> uses_;
  std::map<Pid, std::string> names_;  // names of the processes in uses_
};

}  // namespace assay
