#include "harness/watch/gpus.h"

#include "harness/machine/hardware.h"
#include "harness/machine/nvml.h"
#include "harness/sensors/gpu_sensors.h"
#include "harness/statistics/statistics.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::watch {
namespace {

constexpr std::size_t max_points = 2048, min_readings = 5;

std::vector<double> known_values(const std::map<std::string, Series>& all, const char* name) {
  std::vector<double> values;
  if (const auto found = all.find(name); found != all.end())
    for (const auto& value : found->second.values)
      if (value) values.push_back(*value);
  return values;
}

// What heat or power took: by the driver's counters of seconds, else by the readings that gave such a reason.
double slowed_share(const std::map<std::string, Series>& all) {
  double share = 0;
  bool counted = false;
  for (const char* name :
       {"gpu_throttled_software_thermal", "gpu_throttled_hardware_thermal", "gpu_throttled_power_brake"}) {
    const auto found = all.find(name);
    if (found == all.end() || known_values(all, name).size() < min_readings) continue;
    const Series& series = found->second;
    const double seconds = series.at.back() - series.at.front();
    const std::vector<double> values = known_values(all, name);
    if (seconds <= 0) continue;
    counted = true;
    share = std::max(share, (values.back() - values.front()) / seconds);
  }
  if (counted) return std::clamp(share, 0.0, 1.0);
  constexpr auto slowing = static_cast<std::uint64_t>(ThrottleReason::hardware_slowdown) |
                           static_cast<std::uint64_t>(ThrottleReason::software_thermal) |
                           static_cast<std::uint64_t>(ThrottleReason::hardware_thermal) |
                           static_cast<std::uint64_t>(ThrottleReason::power_brake);
  const std::vector<double> reasons = known_values(all, "gpu_throttle_reasons");
  if (reasons.size() < min_readings) return 0;
  const auto slowed = std::ranges::count_if(
      reasons, [](double bits) { return (static_cast<std::uint64_t>(std::max(0.0, bits)) & slowing) != 0; });
  return static_cast<double>(slowed) / static_cast<double>(reasons.size());
}

}  // namespace

GpuUse use_of_gpu(const std::map<std::string, Series>& series, std::optional<double> max_clock) {
  GpuUse use;
  use.count = 1;
  if (const auto busy = known_values(series, "gpu_utilisation"); busy.size() >= min_readings)
    use.busy = mean(busy), use.busy_p95 = quantile(busy, 0.95);
  if (const auto used = known_values(series, "gpu_memory_used"); !used.empty()) use.memory = std::ranges::max(used);
  use.slowed = slowed_share(series);
  const auto clocks = known_values(series, "gpu_clock");
  if (max_clock && *max_clock > 0 && clocks.size() >= min_readings) use.clock = mean(clocks) / *max_clock;
  if (use.slowed > 0) use.slowed_by = slowed_by(series, 0, 1e18);
  return use;
}

void JobGpus::add(const RankInfo& rank) {
  const std::string name = rank.gpu_uuid.empty() ? rank.gpu_pci : rank.gpu_uuid;
  if (!rank.cuda || name.empty() || gpus_.contains(name)) return;
  std::unique_ptr<Sensor> sensor = find_gpu_sensor(rank.gpu_uuid, rank.gpu_pci);
  if (sensor) sensor->begin();
  if (gpus_.empty()) first_ = name;
  gpus_.emplace(name, Gpu{rank, std::move(sensor), SeriesBuilder(max_points)});
}

void JobGpus::read(double seconds) {
  for (auto& [name, gpu] : gpus_) {
    if (!gpu.sensor) continue;
    std::vector<Reading> readings;
    gpu.sensor->read(seconds, readings);
    for (const Reading& one : readings) gpu.builder.add(seconds, one);
  }
}

GpuUse JobGpus::take() {
  GpuUse all;
  double busy = 0;
  int told = 0;
  std::string why_not;
  const std::shared_ptr<Nvml> nvml = gpus_.empty() ? nullptr : Nvml::load(why_not);
  for (auto& [name, gpu] : gpus_) {
    ++all.count;
    if (all.name.empty() || name == first_) all.name = gpu.rank.gpu_name;
    const auto device = nvml ? nvml->find(gpu.rank.gpu_uuid, gpu.rank.gpu_pci) : std::nullopt;
    std::map<std::string, Series> series = gpu.builder.take();
    const GpuUse use = use_of_gpu(series, device ? device->max_clock() : std::nullopt);
    if (use.busy) busy += *use.busy, ++told;
    if (use.busy_p95) all.busy_p95 = std::max(all.busy_p95.value_or(0), *use.busy_p95);
    if (use.memory && gpu.rank.gpu_memory && *use.memory > all.memory.value_or(0))
      all.memory = use.memory, all.memory_room = gpu.rank.gpu_memory;
    if (use.slowed > all.slowed)
      all.slowed = use.slowed, all.slowed_by = use.slowed_by, all.slowed_rank = gpu.rank.rank, all.clock = use.clock;
    if (name == first_) series_ = std::move(series);
  }
  // What only some of the GPUs tell is no mean over the job.
  if (told > 0 && told == all.count) all.busy = busy / told;
  if (!all.busy) all.busy_p95.reset();
  return all;
}

std::optional<SheetPeak> peak_of_gpu(const std::string& name, const std::string& dtype) {
  const HardwareSheet* sheet = find_hardware(shipped_hardware(), name);
  const auto peak = sheet ? sheet->peak_of(dtype) : std::nullopt;
  if (!peak) return std::nullopt;
  const auto source = sheet->sources.find("peak");
  return SheetPeak{*peak, fmt::format("{} of {}: {}", dtype, sheet->name,
                                      source == sheet->sources.end() ? "its sheet" : source->second)};
}

}  // namespace assay::watch
