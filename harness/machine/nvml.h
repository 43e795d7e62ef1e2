// NVIDIA's management library (libnvidia-ml.so.1), loaded at run time: what a GPU's driver reports about clocks, power,
// energy, memory, links and errors. Needs no NVIDIA header. Values that the driver refuses are absent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Bits of the reasons for lowered clocks, as NVML defines them.
enum class ThrottleReason : std::uint64_t {
  idle = 0x1,
  applications_clocks = 0x2,  // somebody locked or lowered them
  power_cap = 0x4,
  hardware_slowdown = 0x8,
  sync_boost = 0x10,
  software_thermal = 0x20,
  hardware_thermal = 0x40,
  power_brake = 0x80,  // requested by the power supply or the chassis
  display_clocks = 0x100,
};
// "power cap, thermal (software)"; empty if there is none besides idle.
std::string throttle_text(std::uint64_t reasons);

// Errors that a GPU has counted since its driver was loaded; remapped rows since manufacture. Absent: not reported.
struct GpuErrorCounts {
  std::optional<std::uint64_t> ecc_corrected, ecc_uncorrected;
  std::optional<std::uint64_t> rows_remapped;                  // for corrected and uncorrected errors together
  std::optional<std::uint64_t> remap_pending, remap_failures;  // 1: a row awaits a reset; a row could not be remapped
  std::optional<std::uint64_t> nvlink_errors;                  // recoveries and ECC errors, summed over links
  std::optional<std::uint64_t>
      nvlink_corrected;  // replays and CRC errors, corrected by sending again, summed over links
  std::optional<std::uint64_t> pcie_replays;
};

struct GpuClient {
  std::int64_t pid = 0;
  std::optional<std::uint64_t> bytes;  // GPU memory that it uses
};

// How long something has lowered a GPU's clocks, in seconds since its driver was loaded. Absent: not counted.
struct ThrottleTimes {
  std::optional<double> software_thermal, hardware_thermal, power_brake;
};

// Activity as fractions of the GPU's peak, 0 to 1. Absent: not reported.
struct GpuActivity {
  std::optional<double> sm;      // SMs that ran a kernel
  std::optional<double> tensor;  // cycles of the SMs in which tensor cores worked, at any type
  std::optional<double> dram;    // bandwidth of the GPU's memory
};

class Nvml;

// One GPU as NVML sees it; its Nvml stays loaded.
class NvmlDevice {
 public:
  std::string name() const;
  std::string uuid() const;
  std::string serial() const;  // the board's serial number; empty: not reported
  std::string vbios() const;   // version; empty: not reported
  std::string pci() const;     // as the kernel writes it, 0000:1b:00.0
  std::string pci_id() const;  // vendor:device, 10de:2335
  bool lost() const;           // fallen off the bus, or unusable until a reset

  std::optional<double> clock() const;         // Hz, of the SMs
  std::optional<double> max_clock() const;     // the highest of them
  std::optional<double> memory_clock() const;  // Hz
  std::optional<double> power() const;         // W, averaged over about a second if the GPU offers that
  std::optional<double> power_instant() const;
  std::optional<double> energy() const;  // J since the driver was loaded
  std::optional<double> temperature() const;
  std::optional<double> memory_temperature() const;
  std::optional<std::uint64_t> throttle_reasons() const;
  std::optional<double> utilisation() const;  // fraction of time in which a kernel ran
  std::optional<double> memory_used() const;  // B
  std::optional<double> pcie_bytes_per_second(bool sent) const;
  std::optional<double> nvlink_bytes(bool sent) const;  // B since the driver was loaded, all links
  GpuErrorCounts errors() const;
  std::optional<std::int64_t> nvlinks_active() const;  // absent: the GPU has no NVLink, or does not say

  std::optional<bool> mig() const;
  std::vector<std::string> slices() const;  // UUIDs of its parts under MIG; a part has none
  // The GPU of which this is a part under MIG, else itself: a part has its GPU's faults, and no counters of its own.
  NvmlDevice whole() const;
  std::optional<bool> ecc() const;
  std::optional<bool> persistence() const;    // the driver stays loaded while no program uses the GPU
  std::optional<double> power_limit() const;  // W
  std::optional<double> default_power_limit() const;
  std::optional<double> applications_clock() const;  // Hz, of the SMs
  std::optional<double> default_applications_clock() const;
  std::optional<std::int64_t> link_generation() const, link_width() const;
  std::optional<std::int64_t> max_link_generation() const, max_link_width() const;
  std::vector<GpuClient> clients() const;  // processes that compute on it
  std::optional<bool> mps() const;         // whether a process computes through the multi-process service

 private:
  friend class Nvml;
  friend class XidWatch;
  friend class ThrottleCounters;
  friend class ActivityWatch;
  struct Api;
  NvmlDevice(std::shared_ptr<const Api> api, void* handle) : api_(std::move(api)), handle_(handle) {}

  std::shared_ptr<const Api> api_;
  void* handle_;
};

// The loaded library.
class Nvml {
 public:
  // Loads the library once per process. Null if it is absent or does not start; `why_not` is then the reason.
  static std::shared_ptr<Nvml> load(std::string& why_not);

  std::string driver_version() const;  // empty: unknown
  std::string cuda_version() const;    // the newest that the driver supports, "13.0"
  std::vector<NvmlDevice> devices() const;
  // Finds a device by UUID ("GPU-..."), else by PCI address; absent if NVML knows neither.
  std::optional<NvmlDevice> find(std::string_view uuid, std::string_view pci) const;

 private:
  explicit Nvml(std::shared_ptr<const NvmlDevice::Api> api) : api_(std::move(api)) {}

  std::shared_ptr<const NvmlDevice::Api> api_;
};

// Collects the XID errors (critical errors as the driver numbers them) of one GPU, from construction on.
class XidWatch {
 public:
  explicit XidWatch(const NvmlDevice& device);
  ~XidWatch();
  XidWatch(const XidWatch&) = delete;
  XidWatch& operator=(const XidWatch&) = delete;

  // Whether this GPU reports XID errors.
  bool works() const { return set_ != nullptr; }
  // Errors since the last call.
  std::vector<std::uint64_t> take();

 private:
  std::shared_ptr<const NvmlDevice::Api> api_;
  void* set_ = nullptr;
};

// The counters of one GPU's throttled time. They miss nothing between two readings, unlike
// NvmlDevice::throttle_reasons(), which reports the present moment. Drivers of CUDA 12.9 and later have them.
class ThrottleCounters {
 public:
  explicit ThrottleCounters(const NvmlDevice& device);
  ThrottleTimes read() const;

 private:
  NvmlDevice device_;
  unsigned first_field_ =
      0;  // NVML's number of the first of three fields, ordered as ThrottleTimes; 0: none in this driver
};

// One GPU's activity between two moments, from the counters that NVML calls GPM: Hopper and later, without CUPTI.
class ActivityWatch {
 public:
  // NVML refreshes its counters in this period: calls of take() must be further apart (nvmlGpmSampleGet).
  static constexpr double min_seconds = 0.1;

  explicit ActivityWatch(const NvmlDevice& device);
  ~ActivityWatch();
  ActivityWatch(const ActivityWatch&) = delete;
  ActivityWatch& operator=(const ActivityWatch&) = delete;

  // The mean since the last call; the first call only starts the interval. Absent where the GPU lacks these counters.
  GpuActivity take();
  // The next call of take() is the first.
  void restart() { started_ = false; }

 private:
  NvmlDevice device_;
  void* last_ = nullptr;  // samples: of the last call, and one to fill
  void* next_ = nullptr;
  bool started_ = false;
};

}  // namespace assay
