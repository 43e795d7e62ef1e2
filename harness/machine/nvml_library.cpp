// The library itself, its events, and samples of activity.
#include "harness/machine/nvml.h"
#include "harness/machine/nvml_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

namespace assay {

using namespace nvml;

namespace {

// Where containers mount a driver that the loader may not find.
constexpr const char* library_names[] = {"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
                                         "/usr/lib64-nvidia/libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"};

// Opens the library. Null if none is found; `why_not` is then the loader's message about the first name.
void* open_library(std::string& why_not) {
  for (const char* name : library_names) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    const char* error = dlerror();
    if (why_not.empty()) why_not = error ? error : name;
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<Nvml> Nvml::load(std::string& why_not) {
  static std::mutex mutex;
  static std::shared_ptr<Nvml> loaded;
  static std::string reason;
  const std::lock_guard lock(mutex);
  if (!loaded && reason.empty()) {
    if (void* const library = open_library(reason)) {
      reason.clear();
      Return (*const init)() = nvml::find(library, "nvmlInit_v2");
      const char* (*const error_text)(Return) = nvml::find(library, "nvmlErrorString");
      const Return started = init ? init() : -1;
      if (started == success) {
        loaded = std::shared_ptr<Nvml>(new Nvml(std::make_shared<NvmlDevice::Api>(library)));
      } else {
        reason = fmt::format("nvmlInit failed: {}", error_text ? error_text(started) : std::to_string(started).c_str());
        dlclose(library);
      }
    }
  }
  why_not = reason;
  return loaded;
}

std::string Nvml::driver_version() const {
  return nvml_text(
      [&](char* text, unsigned size) { return api_->driver_version ? api_->driver_version(text, size) : -1; });
}

std::string Nvml::cuda_version() const {
  int version = 0;
  if (!api_->cuda_version || api_->cuda_version(&version) != success || version <= 0) return {};
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
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
  constexpr std::size_t max = 100;  // a GPU that has fallen off the bus repeats itself
  constexpr unsigned timeout_ms = 1;
  EventData event{};
  while (set_ && found.size() < max && api_->event_wait(set_, &event, timeout_ms) == success)
    if (event.type == event_xid) found.push_back(event.data);
  return found;
}

ActivityWatch::ActivityWatch(const NvmlDevice& device) : device_(device) {
  const NvmlDevice::Api& api = *device_.api_;
  GpmSupport support{1, 0};
  if (!api.gpm_support || !api.gpm_allocate || !api.gpm_free || !api.gpm_sample || !api.gpm_metrics) return;
  if (api.gpm_support(device_.handle_, &support) != success || support.supported == 0) return;
  for (void** sample : {&last_, &next_})
    if (api.gpm_allocate(sample) != success) *sample = nullptr;
}

ActivityWatch::~ActivityWatch() {
  for (void* sample : {last_, next_})
    if (sample) device_.api_->gpm_free(sample);
}

GpuActivity ActivityWatch::take() {
  GpuActivity activity;
  const NvmlDevice::Api& api = *device_.api_;
  if (!last_ || !next_ || api.gpm_sample(device_.handle_, next_) != success) return activity;
  std::swap(last_, next_);
  if (!std::exchange(started_, true)) return activity;
  GpmMetrics wanted{};
  wanted.version = 1;
  wanted.count = static_cast<unsigned>(gpm_metrics_wanted.size());
  wanted.earlier = next_;
  wanted.later = last_;
  for (std::size_t i = 0; i < gpm_metrics_wanted.size(); ++i) wanted.metrics[i].id = gpm_metrics_wanted[i];
  if (api.gpm_metrics(&wanted) != success) return activity;
  const auto share = [&](std::size_t index) -> std::optional<double> {
    const GpmMetric& metric = wanted.metrics[index];
    if (metric.result != success || !std::isfinite(metric.value)) return std::nullopt;
    return std::clamp(metric.value / 100, 0.0, 1.0);
  };
  return {share(0), share(1), share(2)};
}

}  // namespace assay
