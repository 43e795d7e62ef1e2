// The binding: functions by name, each optional, with the types of NVML's interface (API reference, version 12 and
// later) written out.
#include "harness/telemetry/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <limits>
#include <mutex>

namespace assay {

namespace {

using Return = int;  // nvmlReturn_t
using Handle = void*;
constexpr Return success = 0;

struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct MemoryInfo {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct ProcessInfo {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};
struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency;
  int type;
  Return result;
  union {
    double d;
    unsigned u;
    unsigned long ul;
    unsigned long long ull;
    long long ll;
  } value;
};
struct EventData {
  Handle device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};

constexpr unsigned field_power_average = 185, field_power_instant = 186;
constexpr unsigned field_nvlink_sent = 138, field_nvlink_received = 139;  // KiB of payload
constexpr unsigned all_links = std::numeric_limits<unsigned>::max();
constexpr int clock_sm = 1, clock_memory = 2;
constexpr int links = 18;
constexpr unsigned long long event_xid = 0x8;
constexpr unsigned long long unknown_bytes = std::numeric_limits<unsigned long long>::max();

}  // namespace

// Every function that is used; null where this driver lacks it.
struct NvmlDevice::Api {
  void* library = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*by_index)(unsigned, Handle*) = nullptr;
  Return (*by_uuid)(const char*, Handle*) = nullptr;
  Return (*by_pci)(const char*, Handle*) = nullptr;
  Return (*name)(Handle, char*, unsigned) = nullptr;
  Return (*uuid)(Handle, char*, unsigned) = nullptr;
  Return (*clock)(Handle, int, unsigned*) = nullptr;
  Return (*applications_clock)(Handle, int, unsigned*) = nullptr;
  Return (*default_applications_clock)(Handle, int, unsigned*) = nullptr;
  Return (*power)(Handle, unsigned*) = nullptr;
  Return (*power_limit)(Handle, unsigned*) = nullptr;
  Return (*default_power_limit)(Handle, unsigned*) = nullptr;
  Return (*energy)(Handle, unsigned long long*) = nullptr;
  Return (*temperature)(Handle, int, unsigned*) = nullptr;
  Return (*throttle)(Handle, unsigned long long*) = nullptr;
  Return (*utilization)(Handle, Utilization*) = nullptr;
  Return (*memory)(Handle, MemoryInfo*) = nullptr;
  Return (*fields)(Handle, int, FieldValue*) = nullptr;
  Return (*ecc_mode)(Handle, int*, int*) = nullptr;
  Return (*ecc_errors)(Handle, int, int, unsigned long long*) = nullptr;
  Return (*remapped_rows)(Handle, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  Return (*mig_mode)(Handle, unsigned*, unsigned*) = nullptr;
  Return (*pcie_throughput)(Handle, int, unsigned*) = nullptr;
  Return (*pcie_replays)(Handle, unsigned*) = nullptr;
  Return (*link_generation)(Handle, unsigned*) = nullptr;
  Return (*link_width)(Handle, unsigned*) = nullptr;
  Return (*max_link_generation)(Handle, unsigned*) = nullptr;
  Return (*max_link_width)(Handle, unsigned*) = nullptr;
  Return (*nvlink_state)(Handle, unsigned, int*) = nullptr;
  Return (*nvlink_errors)(Handle, unsigned, int, unsigned long long*) = nullptr;
  Return (*processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
  Return (*mps_processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
  Return (*event_set)(void**) = nullptr;
  Return (*register_events)(Handle, unsigned long long, void*) = nullptr;
  Return (*event_wait)(void*, EventData*, unsigned) = nullptr;
  Return (*event_free)(void*) = nullptr;

  ~Api() {
    if (shutdown) shutdown();
    if (library) dlclose(library);
  }

  template <typename F>
  void find(F& function, const char* symbol) const {
    function = reinterpret_cast<F>(dlsym(library, symbol));
  }
  void find_all() {
    find(shutdown, "nvmlShutdown");
    find(driver_version, "nvmlSystemGetDriverVersion");
    find(count, "nvmlDeviceGetCount_v2");
    find(by_index, "nvmlDeviceGetHandleByIndex_v2");
    find(by_uuid, "nvmlDeviceGetHandleByUUID");
    find(by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
    find(name, "nvmlDeviceGetName");
    find(uuid, "nvmlDeviceGetUUID");
    find(clock, "nvmlDeviceGetClockInfo");
    find(applications_clock, "nvmlDeviceGetApplicationsClock");
    find(default_applications_clock, "nvmlDeviceGetDefaultApplicationsClock");
    find(power, "nvmlDeviceGetPowerUsage");
    find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
    find(default_power_limit, "nvmlDeviceGetPowerManagementDefaultLimit");
    find(energy, "nvmlDeviceGetTotalEnergyConsumption");
    find(temperature, "nvmlDeviceGetTemperature");
    find(throttle, "nvmlDeviceGetCurrentClocksEventReasons");
    if (!throttle) find(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");  // its name before driver 535
    find(utilization, "nvmlDeviceGetUtilizationRates");
    find(memory, "nvmlDeviceGetMemoryInfo");
    find(fields, "nvmlDeviceGetFieldValues");
    find(ecc_mode, "nvmlDeviceGetEccMode");
    find(ecc_errors, "nvmlDeviceGetTotalEccErrors");
    find(remapped_rows, "nvmlDeviceGetRemappedRows");
    find(mig_mode, "nvmlDeviceGetMigMode");
    find(pcie_throughput, "nvmlDeviceGetPcieThroughput");
    find(pcie_replays, "nvmlDeviceGetPcieReplayCounter");
    find(link_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
    find(link_width, "nvmlDeviceGetCurrPcieLinkWidth");
    find(max_link_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    find(max_link_width, "nvmlDeviceGetMaxPcieLinkWidth");
    find(nvlink_state, "nvmlDeviceGetNvLinkState");
    find(nvlink_errors, "nvmlDeviceGetNvLinkErrorCounter");
    find(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    find(mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v3");
    find(event_set, "nvmlEventSetCreate");
    find(register_events, "nvmlDeviceRegisterEvents");
    find(event_wait, "nvmlEventSetWait_v2");
    find(event_free, "nvmlEventSetFree");
  }
};

namespace {

// The number that `function` writes for a device; absent where it refuses.
template <typename T, typename Function, typename... Arguments>
std::optional<T> ask(Function function, Handle device, Arguments... arguments) {
  T value{};
  if (!function || function(device, arguments..., &value) != success) return std::nullopt;
  return value;
}

std::optional<double> scaled(std::optional<unsigned> value, double factor) {
  if (!value) return std::nullopt;
  return factor * static_cast<double>(*value);
}

constexpr double mega = 1e6, milli = 1e-3;

std::optional<std::int64_t> whole(std::optional<unsigned> value) {
  if (!value || *value == 0) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

template <typename Ask>
std::string text_of(const Ask& ask_for) {
  std::array<char, 128> text{};
  return ask_for(text.data(), static_cast<unsigned>(text.size())) == success ? std::string(text.data()) : std::string();
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
  return text_of([&](char* text, unsigned size) { return api_->name ? api_->name(handle_, text, size) : -1; });
}
std::string NvmlDevice::uuid() const {
  return text_of([&](char* text, unsigned size) { return api_->uuid ? api_->uuid(handle_, text, size) : -1; });
}

std::optional<double> NvmlDevice::clock() const { return scaled(ask<unsigned>(api_->clock, handle_, clock_sm), mega); }
std::optional<double> NvmlDevice::memory_clock() const {
  return scaled(ask<unsigned>(api_->clock, handle_, clock_memory), mega);
}
std::optional<double> NvmlDevice::applications_clock() const {
  return scaled(ask<unsigned>(api_->applications_clock, handle_, clock_sm), mega);
}
std::optional<double> NvmlDevice::default_applications_clock() const {
  return scaled(ask<unsigned>(api_->default_applications_clock, handle_, clock_sm), mega);
}

namespace {

// A field of nvmlDeviceGetFieldValues as a number.
template <typename Api>
std::optional<double> field(const Api& api, Handle device, unsigned id, unsigned scope) {
  FieldValue value{};
  value.field = id;
  value.scope = scope;
  if (!api.fields || api.fields(device, 1, &value) != success || value.result != success) return std::nullopt;
  switch (value.type) {  // nvmlValueType_t
    case 0: return value.value.d;
    case 1: return static_cast<double>(value.value.u);
    case 2: return static_cast<double>(value.value.ul);
    case 3: return static_cast<double>(value.value.ull);
    case 4: return static_cast<double>(value.value.ll);
    default: return std::nullopt;
  }
}

std::optional<double> times(std::optional<double> value, double factor) {
  if (value) *value *= factor;
  return value;
}

}  // namespace

std::optional<double> NvmlDevice::power() const {
  if (const auto average = field(*api_, handle_, field_power_average, 0)) return times(average, milli);
  return scaled(ask<unsigned>(api_->power, handle_), milli);
}
std::optional<double> NvmlDevice::power_instant() const {
  return times(field(*api_, handle_, field_power_instant, 0), milli);
}
std::optional<double> NvmlDevice::energy() const {
  const auto millijoules = ask<unsigned long long>(api_->energy, handle_);
  if (!millijoules) return std::nullopt;
  return milli * static_cast<double>(*millijoules);
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
std::optional<std::uint64_t> NvmlDevice::throttle_reasons() const {
  const auto reasons = ask<unsigned long long>(api_->throttle, handle_);
  if (!reasons) return std::nullopt;
  return std::uint64_t{*reasons};
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
std::optional<double> NvmlDevice::nvlink_bytes(bool sent) const {
  return times(field(*api_, handle_, sent ? field_nvlink_sent : field_nvlink_received, all_links), 1024);
}

GpuErrorCounts NvmlDevice::errors() const {
  GpuErrorCounts counts;
  constexpr int uncorrected = 1, since_driver_start = 0;
  if (const auto errors = ask<unsigned long long>(api_->ecc_errors, handle_, uncorrected, since_driver_start))
    counts.ecc_uncorrected = *errors;
  unsigned corrected_rows = 0, uncorrected_rows = 0, pending = 0, failed = 0;
  if (api_->remapped_rows &&
      api_->remapped_rows(handle_, &corrected_rows, &uncorrected_rows, &pending, &failed) == success)
    counts.rows_remapped = std::uint64_t{corrected_rows} + uncorrected_rows;
  if (const auto replays = ask<unsigned>(api_->pcie_replays, handle_)) counts.pcie_replays = *replays;
  for (unsigned link = 0; link < links; ++link) {
    const auto active = ask<int>(api_->nvlink_state, handle_, link);
    if (!active || *active == 0) continue;
    for (const int counter : {0, 1, 2, 3})  // replay, recovery, CRC of flits, CRC of data
      if (const auto errors = ask<unsigned long long>(api_->nvlink_errors, handle_, link, counter))
        counts.nvlink_errors = counts.nvlink_errors.value_or(0) + *errors;
  }
  return counts;
}

std::optional<bool> NvmlDevice::mig() const {
  unsigned now = 0, pending = 0;
  if (!api_->mig_mode || api_->mig_mode(handle_, &now, &pending) != success) return std::nullopt;
  return now == 1;
}
std::optional<bool> NvmlDevice::ecc() const {
  int now = 0, pending = 0;
  if (!api_->ecc_mode || api_->ecc_mode(handle_, &now, &pending) != success) return std::nullopt;
  return now == 1;
}
std::optional<std::int64_t> NvmlDevice::link_generation() const {
  return whole(ask<unsigned>(api_->link_generation, handle_));
}
std::optional<std::int64_t> NvmlDevice::link_width() const { return whole(ask<unsigned>(api_->link_width, handle_)); }
std::optional<std::int64_t> NvmlDevice::max_link_generation() const {
  return whole(ask<unsigned>(api_->max_link_generation, handle_));
}
std::optional<std::int64_t> NvmlDevice::max_link_width() const {
  return whole(ask<unsigned>(api_->max_link_width, handle_));
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

std::shared_ptr<Nvml> Nvml::load(std::string& why_not) {
  static std::mutex mutex;
  static std::shared_ptr<Nvml> loaded;
  static std::string reason;
  const std::lock_guard lock(mutex);
  if (!loaded && reason.empty()) {
    auto api = std::make_shared<NvmlDevice::Api>();
    api->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!api->library) {
      reason = dlerror();
    } else {
      Return (*init)() = nullptr;
      const char* (*error_text)(Return) = nullptr;
      api->find(init, "nvmlInit_v2");
      api->find(error_text, "nvmlErrorString");
      const Return started = init ? init() : -1;
      if (started != success)
        reason = fmt::format("nvmlInit failed: {}", error_text ? error_text(started) : std::to_string(started).c_str());
    }
    if (reason.empty()) {
      api->find_all();
      loaded = std::shared_ptr<Nvml>(new Nvml(std::move(api)));
    }
  }
  why_not = reason;
  return loaded;
}

std::string Nvml::driver_version() const {
  return text_of(
      [&](char* text, unsigned size) { return api_->driver_version ? api_->driver_version(text, size) : -1; });
}

std::vector<NvmlDevice> Nvml::devices() const {
  unsigned count = 0;
  if (!api_->count || !api_->by_index || api_->count(&count) != success) return {};
  std::vector<NvmlDevice> devices;
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    if (api_->by_index(i, &handle) == success) devices.push_back(NvmlDevice(api_, handle));
  }
  return devices;
}

std::optional<NvmlDevice> Nvml::find(std::string_view uuid, std::string_view pci) const {
  Handle handle = nullptr;
  if (!uuid.empty() && api_->by_uuid && api_->by_uuid(std::string(uuid).c_str(), &handle) == success)
    return NvmlDevice(api_, handle);
  if (!pci.empty() && api_->by_pci && api_->by_pci(std::string(pci).c_str(), &handle) == success)
    return NvmlDevice(api_, handle);
  return std::nullopt;
}

XidWatch::XidWatch(const NvmlDevice& device) : api_(device.api_) {
  void* set = nullptr;
  if (!api_->event_set || !api_->register_events || !api_->event_wait || api_->event_set(&set) != success) return;
  if (api_->register_events(device.handle_, event_xid, set) == success)
    set_ = set;
  else if (api_->event_free)
    api_->event_free(set);
}

XidWatch::~XidWatch() {
  if (set_ && api_->event_free) api_->event_free(set_);
}

std::vector<std::uint64_t> XidWatch::take() {
  std::vector<std::uint64_t> found;
  constexpr std::size_t most = 100;  // a GPU that has fallen off the bus repeats itself
  EventData event{};
  while (set_ && found.size() < most && api_->event_wait(set_, &event, 0) == success)
    if (event.type == event_xid) found.push_back(event.data);
  return found;
}

}  // namespace assay
