// The sensors of a CPU machine, each a small class that reads the kernel's files.
#pragma once

#include "harness/machine/cpu_ticks.h"
#include "harness/machine/root.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// One value of one series. A level is a value at one moment (clock, memory, an energy counter); a rate is the mean
// since the sensor was last read, so neighbours can be averaged; a mask holds bits, so neighbours are combined by OR.
struct Reading {
  enum class Kind { level, rate, mask };
  std::string_view name;
  std::string_view unit;
  Kind kind = Kind::level;
  std::optional<double> value;  // absent: the kernel gave none this time
};

// Read by one thread, in order of time. A sensor that the machine lacks gives no readings.
class Sensor {
 public:
  virtual ~Sensor() = default;
  // A new case begins: resets what counts from its start (energy, peaks).
  virtual void begin() {}
  // Appends its readings at `seconds` (since any fixed start).
  virtual void read(double seconds, std::vector<Reading>& readings) = 0;
};

// "clock" (Hz): mean of scaling_cur_freq over up to four of `cpus`.
class CpufreqSensor : public Sensor {
 public:
  CpufreqSensor(const Root& root, const std::vector<int>& cpus);
  bool present() const { return !files_.empty(); }
  void read(double seconds, std::vector<Reading>& readings) override;

 private:
  Root root_;
  std::vector<std::string> files_;
};

// "clock" (Hz) by a timed chain of dependent adds on the reading thread's CPU: used without cpufreq.
class ChainClockSensor : public Sensor {
 public:
  explicit ChainClockSensor(std::function<double()> clock) : clock_(std::move(clock)) {}
  void read(double seconds, std::vector<Reading>& readings) override;

 private:
  std::function<double()> clock_;
};

// "utilisation" and "steal" (1): fractions of the time of `cpus` since the last reading (/proc/stat).
class CpuTimeSensor : public Sensor {
 public:
  CpuTimeSensor(Root root, std::vector<int> cpus) : root_(std::move(root)), cpus_(std::move(cpus)) {}
  void begin() override { last_.reset(); }
  void read(double seconds, std::vector<Reading>& readings) override;

 private:
  Root root_;
  std::vector<int> cpus_;
  std::optional<CpuTicks> last_;
};

// "resident" and "resident_peak" (B) of this process. The kernel's high-water mark is reset when a case begins; if that
// is not permitted, a mark left by an earlier case is ignored and the highest resident size seen is used.
class MemorySensor : public Sensor {
 public:
  explicit MemorySensor(Root root) : root_(std::move(root)) {}
  void begin() override;
  void read(double seconds, std::vector<Reading>& readings) override;

 private:
  Root root_;
  std::uint64_t mark_at_begin_ = 0;
  std::uint64_t highest_seen_ = 0;
};

// "temperature" (degC): the hottest CPU package (hwmon coretemp, k10temp, ...; else a thermal zone of the package).
class TemperatureSensor : public Sensor {
 public:
  explicit TemperatureSensor(const Root& root);
  bool present() const { return !files_.empty(); }
  void read(double seconds, std::vector<Reading>& readings) override;

 private:
  Root root_;
  std::vector<std::string> files_;
};

// "package_energy" (J): of all CPU packages since the case began (powercap RAPL; counters wrap around).
class EnergySensor : public Sensor {
 public:
  explicit EnergySensor(const Root& root);
  bool present() const { return !packages_.empty(); }
  void begin() override;
  void read(double seconds, std::vector<Reading>& readings) override;

 private:
  struct Package {
    std::string counter;     // energy_uj
    std::int64_t range = 0;  // the counter's highest value, microjoules
    std::int64_t last = 0;
    std::int64_t sum = 0;  // since the case began
  };
  Root root_;
  std::vector<Package> packages_;
};

// "involuntary_switches" (1/s) of all threads of this process since the last reading.
class SwitchSensor : public Sensor {
 public:
  explicit SwitchSensor(std::function<std::optional<std::int64_t>()> count) : count_(std::move(count)) {}
  void begin() override { last_.reset(); }
  void read(double seconds, std::vector<Reading>& readings) override;

 private:
  struct Last {
    double seconds;
    std::int64_t count;
  };
  std::function<std::optional<std::int64_t>()> count_;
  std::optional<Last> last_;
};

// "cpu_wait" (1): fraction of the time since the last reading that this process's main thread, which measures, was
// ready to run and had no CPU (/proc/self/schedstat). The machine's CPU pressure (PSI) also counts threads that nothing
// waits for, such as those of other processes at idle priority.
class CpuWaitSensor : public Sensor {
 public:
  explicit CpuWaitSensor(Root root) : root_(std::move(root)) {}
  bool present() const { return waited_seconds().has_value(); }
  void begin() override { last_.reset(); }
  void read(double seconds, std::vector<Reading>& readings) override;

 private:
  std::optional<double> waited_seconds() const;

  Root root_;
  std::optional<std::pair<double, double>> last_;  // when, and how long it had been by then
};

// Every sensor that this machine has, for a process that may use `cpus`.
std::vector<std::unique_ptr<Sensor>> find_sensors(const Root& root, const std::vector<int>& cpus);

}  // namespace assay
