// The sensors of a CPU machine.
#include "harness/sensors/sensors.h"

#include "harness/sensors/telemetry.h"

#include <sys/resource.h>

#include <algorithm>

namespace assay {
namespace {

// Rates over less than this reflect the kernel's tick (up to 10 ms) more than the machine.
constexpr double min_rate_seconds = 0.05;
constexpr std::int64_t min_rate_ticks = 5;
constexpr std::size_t max_clocks = 4;

std::optional<std::int64_t> own_involuntary_switches() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  return usage.ru_nivcsw;
}

}  // namespace

CpufreqSensor::CpufreqSensor(const Root& root, const std::vector<int>& cpus) : root_(root) {
  for (const int cpu : cpus) {
    auto file = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_cur_freq";
    if (root_.integer(file)) files_.push_back(std::move(file));
    if (files_.size() == max_clocks) break;
  }
}

void CpufreqSensor::read(double, std::vector<Reading>& readings) {
  double sum = 0;
  int count = 0;
  for (const auto& file : files_) {
    const auto kilohertz = root_.integer(file);
    if (!kilohertz || *kilohertz <= 0) continue;
    sum += static_cast<double>(*kilohertz) * 1e3;
    ++count;
  }
  readings.push_back({"clock", "Hz", Reading::Kind::level, count > 0 ? std::optional(sum / count) : std::nullopt});
}

void ChainClockSensor::read(double, std::vector<Reading>& readings) {
  readings.push_back({"clock", "Hz", Reading::Kind::level, clock_()});
}

void CpuTimeSensor::read(double, std::vector<Reading>& readings) {
  const auto now = cpu_ticks(root_, cpus_);
  if (!now) return;
  if (!last_) {
    last_ = now;
    return;
  }
  const auto total = now->total - last_->total;
  if (total < min_rate_ticks) return;
  const auto share = [&](std::int64_t part) {
    return std::clamp(static_cast<double>(part) / static_cast<double>(total), 0.0, 1.0);
  };
  readings.push_back({"utilisation", "1", Reading::Kind::rate, share(now->busy - last_->busy)});
  readings.push_back({"steal", "1", Reading::Kind::rate, share(now->steal - last_->steal)});
  last_ = now;
}

void MemorySensor::begin() {
  root_.write("proc/self/clear_refs", "5");
  const auto status = root_.text("proc/self/status").value_or("");
  mark_at_begin_ = kilobytes_field(status, "VmHWM").value_or(0);
  highest_seen_ = 0;
}

void MemorySensor::read(double, std::vector<Reading>& readings) {
  const auto status = root_.text("proc/self/status");
  if (!status) return;
  const auto resident = kilobytes_field(*status, "VmRSS");
  if (!resident) return;
  highest_seen_ = std::max(highest_seen_, *resident);
  const auto mark = kilobytes_field(*status, "VmHWM").value_or(0);
  if (mark > mark_at_begin_) highest_seen_ = std::max(highest_seen_, mark);
  readings.push_back({"resident", "B", Reading::Kind::level, static_cast<double>(*resident)});
  readings.push_back({"resident_peak", "B", Reading::Kind::level, static_cast<double>(highest_seen_)});
}

TemperatureSensor::TemperatureSensor(const Root& root) : root_(root) {
  constexpr std::string_view chips[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};
  constexpr std::string_view package_labels[] = {"Package id", "Tctl", "Tdie"};
  for (const auto& name : root_.list("sys/class/hwmon")) {
    const auto folder = "sys/class/hwmon/" + name + "/";
    const auto chip = root_.text(folder + "name").value_or("");
    if (std::ranges::find(chips, chip) == std::end(chips)) continue;
    std::string first;
    bool labelled = false;
    for (const auto& file : root_.list(folder)) {
      if (!file.starts_with("temp") || !file.ends_with("_input") || !root_.integer(folder + file)) continue;
      if (first.empty()) first = folder + file;
      const auto label = root_.text(folder + file.substr(0, file.size() - 5) + "label").value_or("");
      for (const auto package : package_labels)
        if (label.starts_with(package)) {
          files_.push_back(folder + file);
          labelled = true;
        }
    }
    if (!labelled && !first.empty()) files_.push_back(first);
  }
  if (!files_.empty()) return;
  for (const auto& name : root_.list("sys/class/thermal")) {
    const auto folder = "sys/class/thermal/" + name + "/";
    const auto type = root_.text(folder + "type").value_or("");
    if ((type == "x86_pkg_temp" || type.starts_with("cpu")) && root_.integer(folder + "temp"))
      files_.push_back(folder + "temp");
  }
}

void TemperatureSensor::read(double, std::vector<Reading>& readings) {
  std::optional<double> hottest;
  for (const auto& file : files_)
    if (const auto millidegrees = root_.integer(file))
      hottest = std::max(hottest.value_or(-1e9), static_cast<double>(*millidegrees) / 1e3);
  readings.push_back({"temperature", "degC", Reading::Kind::level, hottest});
}

EnergySensor::EnergySensor(const Root& root) : root_(root) {
  for (const auto& name : root_.list("sys/class/powercap")) {
    // intel-rapl:0 is a package (AMD's too); intel-rapl:0:1 a part of it; intel-rapl-mmio repeats packages.
    if (!name.starts_with("intel-rapl:") || std::ranges::count(name, ':') != 1) continue;
    const auto folder = "sys/class/powercap/" + name + "/";
    if (!root_.text(folder + "name").value_or("").starts_with("package")) continue;
    const auto range = root_.integer(folder + "max_energy_range_uj");
    const auto now = root_.integer(folder + "energy_uj");
    if (!range || *range <= 0 || !now) continue;
    packages_.push_back({folder + "energy_uj", *range, *now, 0});
  }
}

void EnergySensor::begin() {
  for (auto& package : packages_) {
    package.last = root_.integer(package.counter).value_or(package.last);
    package.sum = 0;
  }
}

void EnergySensor::read(double, std::vector<Reading>& readings) {
  double joules = 0;
  bool complete = true;
  for (auto& package : packages_) {
    if (const auto now = root_.integer(package.counter)) {
      // Wraps after minutes at full power, so at most once between two readings.
      package.sum += *now >= package.last ? *now - package.last : *now + package.range - package.last;
      package.last = *now;
    } else {
      complete = false;
    }
    joules += static_cast<double>(package.sum) / 1e6;
  }
  readings.push_back({"package_energy", "J", Reading::Kind::level, complete ? std::optional(joules) : std::nullopt});
}

void SwitchSensor::read(double seconds, std::vector<Reading>& readings) {
  const auto count = count_();
  if (!count) return;
  if (last_) {
    const double elapsed = seconds - last_->seconds;
    if (elapsed < min_rate_seconds) return;
    readings.push_back(
        {"involuntary_switches", "1/s", Reading::Kind::rate, static_cast<double>(*count - last_->count) / elapsed});
  }
  last_ = {seconds, *count};
}

std::optional<double> CpuWaitSensor::waited_seconds() const {
  const auto text = root_.text("proc/self/schedstat");  // ns on a CPU, ns waiting for one, times on a CPU
  const auto numbers = words(text.value_or(""));
  const auto nanoseconds = numbers.size() == 3 ? to_integer(numbers[1]) : std::nullopt;
  return nanoseconds ? std::optional(1e-9 * static_cast<double>(*nanoseconds)) : std::nullopt;
}

void CpuWaitSensor::read(double seconds, std::vector<Reading>& readings) {
  const auto waited = waited_seconds();
  if (!waited) return;
  if (last_) {
    const double elapsed = seconds - last_->first;
    if (elapsed < min_rate_seconds) return;
    readings.push_back(
        {"cpu_wait", "1", Reading::Kind::rate, std::clamp((*waited - last_->second) / elapsed, 0.0, 1.0)});
  }
  last_ = {seconds, *waited};
}

std::vector<std::unique_ptr<Sensor>> find_sensors(const Root& root, const std::vector<int>& cpus) {
  std::vector<std::unique_ptr<Sensor>> all;
  const auto keep_if_present = [&](auto sensor) {
    if (sensor->present()) all.push_back(std::move(sensor));
  };
  auto cpufreq = std::make_unique<CpufreqSensor>(root, cpus);
  if (cpufreq->present())
    all.push_back(std::move(cpufreq));
  else if (root.real())
    all.push_back(std::make_unique<ChainClockSensor>(clock_by_dependent_adds));
  all.push_back(std::make_unique<CpuTimeSensor>(root, cpus));
  all.push_back(std::make_unique<MemorySensor>(root));
  keep_if_present(std::make_unique<TemperatureSensor>(root));
  keep_if_present(std::make_unique<EnergySensor>(root));
  keep_if_present(std::make_unique<CpuWaitSensor>(root));
  if (root.real()) all.push_back(std::make_unique<SwitchSensor>(own_involuntary_switches));
  return all;
}

}  // namespace assay
