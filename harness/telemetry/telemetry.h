// Background sensors of the machine, read while a case runs: clock, utilisation, steal, memory, temperature, energy.
#pragma once

#include "harness/record/record.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>

namespace assay {

// Samples its sensors on a thread of its own from start() to stop(); the thread is bound to no measuring CPU where
// there is a spare one, and its cost is known (metric of its tests). Sensors the kernel does not give are absent.
class Telemetry {
 public:
  explicit Telemetry(double period_seconds = 0.25);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  // `origin` is the case's start on the steady clock; series are seconds since it.
  void start(std::chrono::steady_clock::time_point origin);
  std::map<std::string, Series> stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Clock of the calling thread's CPU by a timed chain of dependent adds (Hz): where there is no cpufreq.
double clock_by_dependent_adds();

}  // namespace assay
