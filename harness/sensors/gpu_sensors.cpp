#include "harness/sensors/gpu_sensors.h"

#include "harness/record/series.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

namespace {

constexpr double slow_period_seconds = 1.0;
constexpr double min_window_seconds = 1.0;

std::optional<NvmlDevice> find_device(const std::string& uuid, const std::string& pci) {
  if (uuid.empty() && pci.empty()) return std::nullopt;  // a CPU
  std::string why_not;
  const auto nvml = Nvml::load(why_not);
  return nvml ? nvml->find(uuid, pci) : std::nullopt;
}

}  // namespace

GpuSensor::GpuSensor(NvmlDevice device) : device_(std::move(device)), partitioned_(device_.mig().value_or(false)) {}

void GpuSensor::begin() {
  energy_at_begin_ = device_.energy();
  sent_ = received_ = {};
  errors_at_begin_ = device_.errors();
  slow_values_at_ = -1e9;
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
  add("gpu_utilisation", "1", Kind::level, device_.utilisation());
  add("gpu_memory_used", "B", Kind::level, device_.memory_used());
  add("gpu_memory_temperature", "degC", Kind::level, device_.memory_temperature());
  read_links(seconds, readings);  // before the slow calls, so that rates use the right time
  if (seconds - slow_values_at_ < slow_period_seconds) return;
  slow_values_at_ = seconds;
  read_slow_values(readings);
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
  if (!(to - from >= min_window_seconds)) return std::nullopt;
  const auto first = value_at(energy, from), last = value_at(energy, to);
  if (!first || !last || !(*last > *first)) return std::nullopt;
  return (*last - *first) / (to - from);
}

std::string slowed_by(const Series& reasons, double from, double to) {
  if (!(to - from >= min_window_seconds)) return {};
  constexpr auto slowing = static_cast<std::uint64_t>(ThrottleReason::applications_clocks) |
                           static_cast<std::uint64_t>(ThrottleReason::hardware_slowdown) |
                           static_cast<std::uint64_t>(ThrottleReason::software_thermal) |
                           static_cast<std::uint64_t>(ThrottleReason::hardware_thermal) |
                           static_cast<std::uint64_t>(ThrottleReason::power_brake);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < reasons.at.size() && i < reasons.values.size(); ++i)
    if (reasons.at[i] >= from && reasons.at[i] <= to && reasons.values[i])
      seen |= static_cast<std::uint64_t>(*reasons.values[i]);
  return throttle_text(seen & slowing);
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
  if (!(to - from >= min_window_seconds) || clocks.size() < min_readings || causes.size() < min_readings) return {};
  if (std::any_of(causes.begin(), causes.end(), [](double cause) { return cause != 0; })) return {};
  const auto [lowest, highest] = std::minmax_element(clocks.begin(), clocks.end());
  if (*highest - *lowest > still * *highest || *highest > clearly_below * max_clock) return {};
  return fmt::format("locked at {:.2f} of {:.2f} GHz", *highest / 1e9, max_clock / 1e9);
}

GpuHealth::GpuHealth(const std::string& uuid, const std::string& pci) : device_(find_device(uuid, pci)) {
  if (!device_) return;
  xids_ = std::make_unique<XidWatch>(*device_);
  before_ = device_->errors();
}

std::string GpuHealth::slowness(const std::map<std::string, Series>& telemetry, double from, double to) const {
  const auto clock = telemetry.find("gpu_clock"), reasons = telemetry.find("gpu_throttle_reasons");
  if (!device_ || clock == telemetry.end() || reasons == telemetry.end()) return {};
  const std::string reason = slowed_by(reasons->second, from, to);
  if (!reason.empty()) return reason;
  const auto max = device_->max_clock();
  return max ? locked_clock(clock->second, reasons->second, *max, from, to) : std::string();
}

std::vector<std::string> GpuHealth::take() {
  std::vector<std::string> found;
  if (!device_) return found;
  for (const std::uint64_t xid : xids_->take()) found.push_back(fmt::format("XID {}", xid));
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
