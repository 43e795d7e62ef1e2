#include "harness/sensors/gpu_sensors.h"

#include "harness/core/text.h"
#include "harness/core/units.h"
#include "harness/record/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace assay {

namespace {

constexpr double slow_period_seconds = 1.0;
constexpr double min_energy_seconds = 1.0;

struct ThrottleCounter {
  const char* series;
  std::optional<double> ThrottleTimes::*time;
  ThrottleReason reason;
};
constexpr std::array<ThrottleCounter, 3> throttle_counters = {
    {{"gpu_throttled_software_thermal", &ThrottleTimes::software_thermal, ThrottleReason::software_thermal},
     {"gpu_throttled_hardware_thermal", &ThrottleTimes::hardware_thermal, ThrottleReason::hardware_thermal},
     {"gpu_throttled_power_brake", &ThrottleTimes::power_brake, ThrottleReason::power_brake}}};

std::optional<NvmlDevice> find_device(const std::string& uuid, const std::string& pci) {
  if (uuid.empty() && pci.empty()) return std::nullopt;  // a CPU
  std::string why_not;
  const auto nvml = Nvml::load(why_not);
  return nvml ? nvml->find(uuid, pci) : std::nullopt;
}

const Series* find_series(const std::map<std::string, Series>& telemetry, const char* name) {
  const auto found = telemetry.find(name);
  return found == telemetry.end() ? nullptr : &found->second;
}

// The stretches between readings in which a counter grew.
std::vector<Interval> growth(const Series* counter) {
  std::vector<Interval> stretches;
  const std::size_t count = counter ? std::min(counter->at.size(), counter->values.size()) : 0;
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < count; ++i) {
    if (!counter->values[i]) continue;
    if (last && *counter->values[i] > *counter->values[*last]) {
      if (!stretches.empty() && stretches.back().high == counter->at[*last])
        stretches.back().high = counter->at[i];
      else
        stretches.push_back({counter->at[*last], counter->at[i]});
    }
    last = i;
  }
  return stretches;
}

bool meets(const std::vector<Interval>& stretches, double from, double to) {
  return std::ranges::any_of(stretches,
                             [&](const Interval& stretch) { return stretch.low < to && stretch.high > from; });
}

}  // namespace

GpuSensor::GpuSensor(NvmlDevice device)
    : device_(std::move(device)), partitioned_(device_.mig().value_or(false)), throttle_(device_), activity_(device_) {}

void GpuSensor::begin() {
  energy_at_begin_ = device_.energy();
  sent_ = received_ = {};
  errors_at_begin_ = device_.errors();
  throttled_at_begin_ = throttle_.read();
  activity_.restart();
  activity_at_ = slow_values_at_ = -1e9;
}

void GpuSensor::read(double seconds, std::vector<Reading>& readings) {
  using Kind = Reading::Kind;
  const auto add = [&](std::string_view name, std::string_view unit, Kind kind, std::optional<double> value) {
    readings.push_back({name, unit, kind, value});
  };
  add("gpu_clock", "Hz", Kind::level, device_.clock());
  add("gpu_memory_clock", "Hz", Kind::level, device_.memory_clock());
  add("gpu_power", "W", Kind::level, device_.power());
  add("gpu_power_instant", "W", Kind::level, device_.power_instant());
  const auto energy = partitioned_ ? std::nullopt : device_.energy();
  if (!energy_at_begin_) energy_at_begin_ = energy;
  add("gpu_energy", "J", Kind::level, energy ? std::optional(*energy - *energy_at_begin_) : std::nullopt);
  add("gpu_temperature", "degC", Kind::level, device_.temperature());
  const auto reasons = device_.throttle_reasons();
  add("gpu_throttle_reasons", "1", Kind::mask, reasons ? std::optional(static_cast<double>(*reasons)) : std::nullopt);
  read_throttling(readings);
  read_activity(seconds, readings);
  add("gpu_utilisation", "1", Kind::level, device_.utilisation());
  add("gpu_memory_used", "B", Kind::level, device_.memory_used());
  add("gpu_memory_temperature", "degC", Kind::level, device_.memory_temperature());
  read_links(seconds, readings);  // before the slow calls, so that rates use the right time
  if (seconds - slow_values_at_ < slow_period_seconds) return;
  slow_values_at_ = seconds;
  read_slow_values(readings);
}

void GpuSensor::read_throttling(std::vector<Reading>& readings) {
  const ThrottleTimes now = throttle_.read();
  for (const ThrottleCounter& counter : throttle_counters) {
    const auto time = now.*counter.time, before = throttled_at_begin_.*counter.time;
    readings.push_back(
        {counter.series, "s", Reading::Kind::level, time && before ? std::optional(*time - *before) : std::nullopt});
  }
}

void GpuSensor::read_activity(double seconds, std::vector<Reading>& readings) {
  if (partitioned_ || seconds - activity_at_ < ActivityWatch::min_seconds) return;
  activity_at_ = seconds;
  const GpuActivity activity = activity_.take();
  readings.push_back({"sm_active", "1", Reading::Kind::rate, activity.sm});
  readings.push_back({"tensor_active", "1", Reading::Kind::rate, activity.tensor});
  readings.push_back({"dram_active", "1", Reading::Kind::rate, activity.dram});
}

void GpuSensor::read_slow_values(std::vector<Reading>& readings) {
  readings.push_back({"gpu_pcie_sent", "B/s", Reading::Kind::rate, device_.pcie_bytes_per_second(true)});
  readings.push_back({"gpu_pcie_received", "B/s", Reading::Kind::rate, device_.pcie_bytes_per_second(false)});
  const GpuErrorCounts errors = device_.errors();
  const auto count = [&](std::string_view name, std::optional<std::uint64_t> GpuErrorCounts::*which) {
    const auto now = errors.*which, before = errors_at_begin_.*which;
    const bool known = now && before && *now >= *before;
    readings.push_back(
        {name, "1", Reading::Kind::level, known ? std::optional(static_cast<double>(*now - *before)) : std::nullopt});
  };
  count("gpu_ecc_corrected", &GpuErrorCounts::ecc_corrected);
  count("gpu_ecc_uncorrected", &GpuErrorCounts::ecc_uncorrected);
  count("gpu_rows_remapped", &GpuErrorCounts::rows_remapped);
  count("gpu_pcie_replays", &GpuErrorCounts::pcie_replays);
  count("gpu_nvlink_errors", &GpuErrorCounts::nvlink_errors);
  count("gpu_nvlink_corrected", &GpuErrorCounts::nvlink_corrected);
}

void GpuSensor::read_links(double seconds, std::vector<Reading>& readings) {
  const auto rate = [&](std::string_view name, bool sent, Link& last) {
    const auto bytes = device_.nvlink_bytes(sent);
    if (bytes && last.bytes && seconds > last.seconds)
      readings.push_back({name, "B/s", Reading::Kind::rate, (*bytes - *last.bytes) / (seconds - last.seconds)});
    last = {bytes, seconds};
  };
  rate("gpu_nvlink_sent", true, sent_);
  rate("gpu_nvlink_received", false, received_);
}

std::unique_ptr<Sensor> find_gpu_sensor(const std::string& uuid, const std::string& pci) {
  auto device = find_device(uuid, pci);
  return device ? std::make_unique<GpuSensor>(std::move(*device)) : nullptr;
}

std::optional<double> mean_watts(const Series& energy, double from, double to) {
  if (!(to - from >= min_energy_seconds)) return std::nullopt;
  const auto first = value_at(energy, from), last = value_at(energy, to);
  if (!first || !last || !(*last > *first)) return std::nullopt;
  return (*last - *first) / (to - from);
}

std::string gpu_levels(const std::map<std::string, Series>& telemetry, double from, double to) {
  std::vector<std::string> parts;
  for (const char* name : {"gpu_temperature", "gpu_clock", "gpu_power"}) {
    std::vector<double> seen;
    const Series* series = find_series(telemetry, name);
    for (std::size_t i = 0; series && i < std::min(series->at.size(), series->values.size()); ++i)
      if (series->at[i] >= from && series->at[i] <= to && series->values[i]) seen.push_back(*series->values[i]);
    if (seen.empty()) continue;
    const bool highest = std::string_view(name) == "gpu_temperature";
    parts.push_back(
        format_quantity(highest ? std::ranges::max(seen)
                                : std::accumulate(seen.begin(), seen.end(), 0.0) / static_cast<double>(seen.size()),
                        series->unit));
  }
  return joined(parts);
}

std::string slowed_by(const std::map<std::string, Series>& telemetry, double from, double to) {
  constexpr auto slowing = static_cast<std::uint64_t>(ThrottleReason::applications_clocks) |
                           static_cast<std::uint64_t>(ThrottleReason::hardware_slowdown) |
                           static_cast<std::uint64_t>(ThrottleReason::software_thermal) |
                           static_cast<std::uint64_t>(ThrottleReason::hardware_thermal) |
                           static_cast<std::uint64_t>(ThrottleReason::power_brake);
  std::uint64_t seen = 0;
  if (const Series* reasons = find_series(telemetry, "gpu_throttle_reasons"))
    for (std::size_t i = 0; i < reasons->at.size() && i < reasons->values.size(); ++i)
      if (reasons->at[i] >= from && reasons->at[i] <= to && reasons->values[i])
        seen |= static_cast<std::uint64_t>(*reasons->values[i]);
  seen &= slowing;
  for (const ThrottleCounter& counter : throttle_counters)
    if (meets(growth(find_series(telemetry, counter.series)), from, to))
      seen |= static_cast<std::uint64_t>(counter.reason);
  return throttle_text(seen);
}

std::optional<std::vector<int>> throttled_samples(const std::map<std::string, Series>& telemetry,
                                                  const std::vector<double>& at, double end) {
  bool counted = false;
  std::vector<Interval> stretches;
  for (const ThrottleCounter& counter : throttle_counters) {
    const Series* series = find_series(telemetry, counter.series);
    counted = counted || series;
    const std::vector<Interval> more = growth(series);
    stretches.insert(stretches.end(), more.begin(), more.end());
  }
  if (!counted || at.empty()) return std::nullopt;
  std::vector<int> throttled;
  for (std::size_t i = 0; i < at.size(); ++i)
    if (meets(stretches, at[i], i + 1 < at.size() ? at[i + 1] : end)) throttled.push_back(static_cast<int>(i));
  return throttled;
}

std::string locked_clock(const Series& clock, const Series& reasons, double max_clock, double from, double to) {
  constexpr std::size_t min_readings = 3;
  // Cards with graphics seldom reach the highest clock they list, and the driver gives no reason for that.
  constexpr double still = 0.01, clearly_below = 0.85;
  const auto known = [&](const Series& series) {
    std::vector<double> values;
    for (std::size_t i = 0; i < series.at.size() && i < series.values.size(); ++i)
      if (series.at[i] >= from && series.at[i] <= to && series.values[i]) values.push_back(*series.values[i]);
    return values;
  };
  const std::vector<double> clocks = known(clock), causes = known(reasons);
  if (clocks.size() < min_readings || causes.size() < min_readings) return {};
  if (std::ranges::any_of(causes, [](double cause) { return cause != 0; })) return {};
  const auto [lowest, highest] = std::ranges::minmax_element(clocks);
  if (*highest - *lowest > still * *highest || *highest > clearly_below * max_clock) return {};
  return fmt::format("locked at {:.2f} of {:.2f} GHz", *highest / 1e9, max_clock / 1e9);
}

GpuHealth::GpuHealth(const std::string& uuid, const std::string& pci) : device_(find_device(uuid, pci)) {
  if (device_) device_ = device_->whole();
  if (!device_) return;
  xids_ = std::make_unique<XidWatch>(*device_);
  at_start_ = before_ = device_->errors();
}

std::string GpuHealth::slowness(const std::map<std::string, Series>& telemetry, double from, double to) const {
  if (!device_) return {};
  if (std::string reason = slowed_by(telemetry, from, to); !reason.empty()) return reason;
  const Series *clock = find_series(telemetry, "gpu_clock"), *reasons = find_series(telemetry, "gpu_throttle_reasons");
  const auto max = device_->max_clock();
  return clock && reasons && max ? locked_clock(*clock, *reasons, *max, from, to) : std::string();
}

std::string GpuHealth::corrected_link_errors(double seconds) const {
  // The rate from which NVIDIA's driver developers consider CRC errors (DCGM, dcgm_gpu_hardware_limits.h).
  constexpr double max_per_second = 100;
  const auto before = at_start_.nvlink_corrected, now = device_ ? device_->errors().nvlink_corrected : std::nullopt;
  if (!before || !now || *now < *before) return {};
  // A burst in a short case is no lasting rate.
  const double rate = static_cast<double>(*now - *before) / std::max(seconds, 1.0);
  return rate < max_per_second ? "" : fmt::format("{:.0f} corrected NVLink errors per second", rate);
}

std::vector<ErrorCounter> GpuHealth::counted() {
  if (!device_) return {};
  for (const std::uint64_t xid : xids_->take()) ++xids_seen_[xid];
  const std::string pci = device_->pci();
  std::vector<ErrorCounter> all = grown(error_counters(at_start_, pci), error_counters(device_->errors(), pci));
  for (const auto& [xid, count] : xids_seen_) all.push_back({pci, fmt::format("xid_{}", xid), count});
  return all;
}

std::vector<std::string> GpuHealth::take() {
  std::vector<std::string> found;
  if (!device_) return found;
  for (const std::uint64_t xid : xids_->take()) {
    found.push_back(fmt::format("XID {}", xid));
    ++xids_seen_[xid];
  }
  if (device_->lost()) found.push_back("the GPU is lost: it fell off the bus, or needs a reset");
  const GpuErrorCounts now = device_->errors();
  const auto grown = [&](std::optional<std::uint64_t> before, std::optional<std::uint64_t> after, const char* what) {
    if (before && after && *after > *before) found.push_back(fmt::format("{} {}", *after - *before, what));
  };
  grown(before_.ecc_uncorrected, now.ecc_uncorrected, "uncorrectable ECC errors");
  grown(before_.rows_remapped, now.rows_remapped, "memory rows remapped");
  grown(before_.remap_pending, now.remap_pending, "memory rows to be remapped by a reset");
  grown(before_.remap_failures, now.remap_failures, "memory rows that could not be remapped");
  grown(before_.nvlink_errors, now.nvlink_errors, "NVLink errors");
  before_ = now;
  return found;
}

}  // namespace assay
