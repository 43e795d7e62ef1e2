// Background sensors of the machine, read while a case runs: clock, utilisation, steal, memory, temperature, energy.
#pragma once

#include "harness/record/record.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct TelemetryOptions {
  double period_seconds = 0.25;
  std::filesystem::path root = "/";  // where /proc and /sys are found
  std::vector<int> cpus = {};        // CPUs that the case runs on; empty: those of this rank
  std::size_t max_points = 1024;     // most points of a series; longer cases are thinned by half
  // The rank's GPU; empty: none. Its sensors are those of gpu_sensors.h.
  std::string gpu_uuid = {};
  std::string gpu_pci = {};
  bool host = true;                 // whether to read the host's sensors too: only one rank does
  std::vector<int> host_cpus = {};  // CPUs of all ranks on this host, watched for other users; empty: not watched
};

// Samples its sensors on a thread from start() to stop(), which may be called repeatedly. The thread runs on the last
// of the rank's CPUs: a team uses the first ones, so it disturbs a measuring CPU only if none is spare.
// It costs 160 us per reading, 0.06 % of a CPU, on a busy machine with two. Sensors that the kernel does not offer are
// absent.
//
// Series, by name: clock (Hz), utilisation and steal (fraction of the rank's CPUs), resident and resident_peak (B),
// temperature (degC), package_energy (J since the case began), involuntary_switches (1/s), outside_cpu (CPUs),
// cpu_wait (1). Without cpufreq the clock is that of the sampling thread's CPU, from about 30 us of dependent adds
// per period (0.01 % of a CPU).
class Telemetry {
 public:
  explicit Telemetry(TelemetryOptions options);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  // `origin` is the case's start on the steady clock; series are seconds since it.
  void start(std::chrono::steady_clock::time_point origin);
  std::map<std::string, Series> stop();
  // The outside use during the last case, after stop(): see OutsideCpuSensor::in_window. Absent if the host's CPUs were
  // not watched.
  std::optional<OutsideCpu> outside_cpu(double from, double to);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Clock (Hz) of the calling thread's CPU by a timed chain of dependent adds, in about 30 us: used without cpufreq. The
// fastest of three, so that an interruption does not look like a slow clock.
double clock_by_dependent_adds();

}  // namespace assay
