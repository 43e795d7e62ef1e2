// Queries of one GPU.
#include "harness/machine/nvml.h"

#include "harness/machine/nvml_api.h"

#include <fmt/format.h>

#include <array>
#include <limits>

namespace assay {

namespace {

using namespace nvml;

constexpr unsigned all_links = std::numeric_limits<unsigned>::max();
constexpr int links = 18;
constexpr unsigned long long unknown_bytes = std::numeric_limits<unsigned long long>::max();

// The number that `function` writes for a device; absent if it refuses.
template <typename T, typename Function, typename... Arguments>
std::optional<T> ask(Function function, Handle device, Arguments... arguments) {
  T value{};
  if (!function || function(device, arguments..., &value) != success) return std::nullopt;
  return value;
}

template <typename T>
std::optional<double> scaled(std::optional<T> value, double factor) {
  if (!value) return std::nullopt;
  return factor * static_cast<double>(*value);
}

constexpr double mega = 1e6, milli = 1e-3, nano = 1e-9;

std::optional<std::int64_t> nonzero(std::optional<unsigned> value) {
  if (!value || *value == 0) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

}  // namespace

std::string throttle_text(std::uint64_t reasons) {
  struct Word {
    ThrottleReason reason;
    std::string_view text;
  };
  static constexpr Word words[] = {{ThrottleReason::applications_clocks, "locked or lowered clocks"},
                                   {ThrottleReason::power_cap, "power cap"},
                                   {ThrottleReason::hardware_slowdown, "hardware slowdown"},
                                   {ThrottleReason::sync_boost, "sync boost"},
                                   {ThrottleReason::software_thermal, "thermal (software)"},
                                   {ThrottleReason::hardware_thermal, "thermal (hardware)"},
                                   {ThrottleReason::power_brake, "power brake"},
                                   {ThrottleReason::display_clocks, "display clocks"}};
  std::string text;
  for (const Word& word : words)
    if (reasons & static_cast<std::uint64_t>(word.reason))
      text += fmt::format("{}{}", text.empty() ? "" : ", ", word.text);
  return text;
}

std::string NvmlDevice::name() const {
  return nvml_text([&](char* text, unsigned size) { return api_->name ? api_->name(handle_, text, size) : -1; });
}
std::string NvmlDevice::uuid() const {
  return nvml_text([&](char* text, unsigned size) { return api_->uuid ? api_->uuid(handle_, text, size) : -1; });
}
std::string NvmlDevice::serial() const {
  return nvml_text([&](char* text, unsigned size) { return api_->serial ? api_->serial(handle_, text, size) : -1; });
}

std::string NvmlDevice::vbios() const {
  return nvml_text([&](char* text, unsigned size) { return api_->vbios ? api_->vbios(handle_, text, size) : -1; });
}

std::string NvmlDevice::pci() const {
  const auto place = ask<PciInfo>(api_->pci, handle_);
  return place ? fmt::format("{:04x}:{:02x}:{:02x}.0", place->domain, place->bus, place->device) : std::string();
}
std::string NvmlDevice::pci_id() const {
  const auto place = ask<PciInfo>(api_->pci, handle_);
  return place ? fmt::format("{:04x}:{:04x}", place->pci_device_id & 0xffff, place->pci_device_id >> 16)
               : std::string();
}
bool NvmlDevice::lost() const {
  MemoryInfo memory{};
  const Return answer = api_->memory ? api_->memory(handle_, &memory) : success;
  return answer == gpu_is_lost || answer == reset_required;
}

namespace {

// A clock is never 0: a driver that reports 0 does not know it.
std::optional<double> hertz(std::optional<unsigned> megahertz) {
  return megahertz && *megahertz > 0 ? scaled(megahertz, mega) : std::nullopt;
}

}  // namespace

std::optional<double> NvmlDevice::clock() const { return hertz(ask<unsigned>(api_->clock, handle_, clock_sm)); }
std::optional<double> NvmlDevice::max_clock() const { return hertz(ask<unsigned>(api_->max_clock, handle_, clock_sm)); }
std::optional<double> NvmlDevice::memory_clock() const {
  return hertz(ask<unsigned>(api_->clock, handle_, clock_memory));
}
std::optional<double> NvmlDevice::applications_clock() const {
  return hertz(ask<unsigned>(api_->applications_clock, handle_, clock_sm));
}
std::optional<double> NvmlDevice::default_applications_clock() const {
  return hertz(ask<unsigned>(api_->default_applications_clock, handle_, clock_sm));
}

namespace {

// The value that nvmlDeviceGetFieldValues found for one field, as a number.
std::optional<double> number_of(const FieldValue& value) {
  if (value.result != success) return std::nullopt;
  switch (value.type) {  // nvmlValueType_t
    case 0: return value.value.d;
    case 1: return static_cast<double>(value.value.u);
    case 2: return static_cast<double>(value.value.ul);
    case 3: return static_cast<double>(value.value.ull);
    case 4: return static_cast<double>(value.value.ll);
    case 5: return static_cast<double>(value.value.i);
    case 6: return static_cast<double>(value.value.us);
    default: return std::nullopt;
  }
}

template <typename Api>
std::optional<double> field(const Api& api, Handle device, unsigned id, unsigned scope) {
  FieldValue value{};
  value.field = id;
  value.scope = scope;
  if (!api.fields || api.fields(device, 1, &value) != success) return std::nullopt;
  return number_of(value);
}

}  // namespace

std::optional<double> NvmlDevice::power() const {
  if (const auto average = field(*api_, handle_, field_power_average, 0)) return scaled(average, milli);
  return scaled(ask<unsigned>(api_->power, handle_), milli);
}
std::optional<double> NvmlDevice::power_instant() const {
  return scaled(field(*api_, handle_, field_power_instant, 0), milli);
}
std::optional<double> NvmlDevice::energy() const {
  return scaled(ask<unsigned long long>(api_->energy, handle_), milli);
}
std::optional<double> NvmlDevice::power_limit() const {
  return scaled(ask<unsigned>(api_->power_limit, handle_), milli);
}
std::optional<double> NvmlDevice::default_power_limit() const {
  return scaled(ask<unsigned>(api_->default_power_limit, handle_), milli);
}
std::optional<double> NvmlDevice::temperature() const {
  return scaled(ask<unsigned>(api_->temperature, handle_, 0), 1);
}
std::optional<double> NvmlDevice::memory_temperature() const {
  const auto degrees = field(*api_, handle_, field_memory_temperature, 0);
  return degrees && *degrees > 0 ? degrees : std::nullopt;  // 0: the GPU lacks the sensor
}
std::optional<std::uint64_t> NvmlDevice::throttle_reasons() const {
  return ask<unsigned long long>(api_->throttle, handle_);
}
std::optional<double> NvmlDevice::utilisation() const {
  const auto shares = ask<Utilization>(api_->utilization, handle_);
  if (!shares) return std::nullopt;
  return static_cast<double>(shares->gpu) / 100.0;
}
std::optional<double> NvmlDevice::memory_used() const {
  const auto memory = ask<MemoryInfo>(api_->memory, handle_);
  if (!memory) return std::nullopt;
  return static_cast<double>(memory->used);
}
std::optional<double> NvmlDevice::pcie_bytes_per_second(bool sent) const {
  constexpr double kilobyte = 1e3;
  return scaled(ask<unsigned>(api_->pcie_throughput, handle_, sent ? 0 : 1), kilobyte);
}
namespace {

// The sum over all links; absent if the first link lacks the field.
template <typename Api>
std::optional<double> sum_of_links(const Api& api, Handle device, unsigned id) {
  std::optional<double> sum;
  for (unsigned link = 0; link < links; ++link) {
    const auto value = field(api, device, id, link);
    if (!value && link == 0) return std::nullopt;
    sum = sum.value_or(0) + value.value_or(0);
  }
  return sum;
}

}  // namespace

std::optional<double> NvmlDevice::nvlink_bytes(bool sent) const {
  constexpr double kibibyte = 1024;
  if (const auto kibibytes = field(*api_, handle_, sent ? field_nvlink_sent : field_nvlink_received, all_links))
    return scaled(kibibytes, kibibyte);
  return sum_of_links(*api_, handle_, sent ? field_nvlink5_sent : field_nvlink5_received);
}

std::optional<std::int64_t> NvmlDevice::nvlinks_active() const {
  std::optional<std::int64_t> count;
  for (unsigned link = 0; link < links; ++link)
    if (const auto active = ask<int>(api_->nvlink_state, handle_, link)) count = count.value_or(0) + (*active != 0);
  return count;
}

GpuErrorCounts NvmlDevice::errors() const {
  GpuErrorCounts counts;
  constexpr int corrected = 0, uncorrected = 1, since_driver_start = 0;
  counts.ecc_corrected = ask<unsigned long long>(api_->ecc_errors, handle_, corrected, since_driver_start);
  counts.ecc_uncorrected = ask<unsigned long long>(api_->ecc_errors, handle_, uncorrected, since_driver_start);
  unsigned corrected_rows = 0, uncorrected_rows = 0, pending = 0, failed = 0;
  if (api_->remapped_rows &&
      api_->remapped_rows(handle_, &corrected_rows, &uncorrected_rows, &pending, &failed) == success) {
    counts.rows_remapped = std::uint64_t{corrected_rows} + uncorrected_rows;
    counts.remap_pending = pending;
    counts.remap_failures = failed;
  }
  counts.pcie_replays = ask<unsigned>(api_->pcie_replays, handle_);
  const auto add = [](std::optional<std::uint64_t>& sum, auto errors) {
    if (errors) sum = sum.value_or(0) + static_cast<std::uint64_t>(*errors);
  };
  for (unsigned link = 0; link < links; ++link) {
    const auto active = ask<int>(api_->nvlink_state, handle_, link);
    if (!active || *active == 0) continue;
    // From NVLink 5 on, counters of these names count no faults.
    if (ask<unsigned>(api_->nvlink_version, handle_, link).value_or(0) >= nvlink5) continue;
    const auto read = [&](int counter) { return ask<unsigned long long>(api_->nvlink_errors, handle_, link, counter); };
    for (const int counter : nvlink_error_counters) add(counts.nvlink_errors, read(counter));
    for (const int counter : nvlink_corrected_counters) add(counts.nvlink_corrected, read(counter));
  }
  if (counts.nvlink_errors || counts.nvlink_corrected) return counts;
  for (const unsigned id : fields_nvlink5_errors) add(counts.nvlink_errors, sum_of_links(*api_, handle_, id));
  for (const unsigned id : fields_nvlink5_corrected) add(counts.nvlink_corrected, sum_of_links(*api_, handle_, id));
  return counts;
}

ThrottleCounters::ThrottleCounters(const NvmlDevice& device) : device_(device) {
  int version = 0;
  if (!device_.api_->cuda_version || device_.api_->cuda_version(&version) != success) return;
  if (version >= 13000)
    first_field_ = field_throttled;
  else if (version >= 12090)
    first_field_ = field_throttled_12;
}

ThrottleTimes ThrottleCounters::read() const {
  std::array<FieldValue, 3> values{};
  for (unsigned i = 0; i < values.size(); ++i) values[i].field = first_field_ + i;
  const auto& api = *device_.api_;
  if (first_field_ == 0 || !api.fields ||
      api.fields(device_.handle_, static_cast<int>(values.size()), values.data()) != success)
    return {};
  return {scaled(number_of(values[0]), nano), scaled(number_of(values[1]), nano), scaled(number_of(values[2]), nano)};
}

std::optional<bool> NvmlDevice::mig() const {
  unsigned now = 0, pending = 0;
  if (!api_->mig_mode || api_->mig_mode(handle_, &now, &pending) != success) return std::nullopt;
  return now == 1;
}
std::vector<std::string> NvmlDevice::slices() const {
  const unsigned most = api_->slice ? ask<unsigned>(api_->max_slices, handle_).value_or(0) : 0;
  std::vector<std::string> uuids;
  for (unsigned i = 0; i < most; ++i) {
    Handle slice = nullptr;
    if (api_->slice(handle_, i, &slice) == success) uuids.push_back(NvmlDevice(api_, slice).uuid());
  }
  std::erase(uuids, "");
  return uuids;
}
NvmlDevice NvmlDevice::whole() const {
  Handle gpu = nullptr;
  return api_->whole && api_->whole(handle_, &gpu) == success ? NvmlDevice(api_, gpu) : *this;
}
std::optional<bool> NvmlDevice::ecc() const {
  int now = 0, pending = 0;
  if (!api_->ecc_mode || api_->ecc_mode(handle_, &now, &pending) != success) return std::nullopt;
  return now == 1;
}
std::optional<bool> NvmlDevice::persistence() const {
  const auto mode = ask<int>(api_->persistence_mode, handle_);
  return mode ? std::optional(*mode == 1) : std::nullopt;
}
std::optional<std::int64_t> NvmlDevice::link_generation() const {
  return nonzero(ask<unsigned>(api_->link_generation, handle_));
}
std::optional<std::int64_t> NvmlDevice::link_width() const { return nonzero(ask<unsigned>(api_->link_width, handle_)); }
std::optional<std::int64_t> NvmlDevice::max_link_generation() const {
  return nonzero(ask<unsigned>(api_->max_link_generation, handle_));
}
std::optional<std::int64_t> NvmlDevice::max_link_width() const {
  return nonzero(ask<unsigned>(api_->max_link_width, handle_));
}

std::vector<GpuClient> NvmlDevice::clients() const {
  std::array<ProcessInfo, 256> processes{};
  auto count = static_cast<unsigned>(processes.size());
  if (!api_->processes || api_->processes(handle_, &count, processes.data()) != success) return {};
  std::vector<GpuClient> clients;
  for (unsigned i = 0; i < count && i < processes.size(); ++i) {
    GpuClient client{static_cast<std::int64_t>(processes[i].pid), std::nullopt};
    if (processes[i].used_bytes != unknown_bytes) client.bytes = processes[i].used_bytes;
    clients.push_back(client);
  }
  return clients;
}
std::optional<bool> NvmlDevice::mps() const {
  std::array<ProcessInfo, 256> processes{};
  auto count = static_cast<unsigned>(processes.size());
  if (!api_->mps_processes || api_->mps_processes(handle_, &count, processes.data()) != success) return std::nullopt;
  return count > 0;
}

}  // namespace assay
