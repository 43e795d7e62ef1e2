// NVML's functions by name, each optional, with the types of its interface written out (nvml.h of CUDA 12 and 13). Only
// for the binding's own files.
#pragma once

#include "harness/machine/nvml.h"

#include <dlfcn.h>

#include <array>
#include <string>

namespace assay {

namespace nvml {

using Return = int;  // nvmlReturn_t
using Handle = void*;
constexpr Return success = 0, gpu_is_lost = 15, reset_required = 16;

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
    int i;
    unsigned u;
    unsigned long ul;
    unsigned long long ull;
    long long ll;
    unsigned short us;
  } value;
};
struct PciInfo {  // nvmlPciInfo_t
  char old_bus_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
struct EventData {
  Handle device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct GpmMetric {  // nvmlGpmMetric_t
  unsigned id;
  Return result;
  double value;
  const char* texts[3];
};
struct GpmMetrics {  // nvmlGpmMetricsGet_t
  unsigned version;
  unsigned count;
  void* earlier;
  void* later;
  // NVML reads and writes only `count` of them. The size is that of CUDA 13.5, where the type has grown without a new
  // version.
  std::array<GpmMetric, 477> metrics;
};
struct GpmSupport {  // nvmlGpmSupport_t
  unsigned version;
  unsigned supported;
};

// tests/gpu/nvml_facts.cpp compares what follows with NVIDIA's own binding for Python.
constexpr unsigned long long event_xid = 0x8;
constexpr unsigned field_power_average = 185, field_power_instant = 186;
constexpr unsigned field_memory_temperature = 82;
constexpr unsigned field_nvlink_sent = 138, field_nvlink_received = 139;    // KiB of payload, before NVLink 5
constexpr unsigned field_nvlink5_sent = 202, field_nvlink5_received = 204;  // B of one link
// Error counters of one link up to NVLink 4. On Hopper the fields of nvmlDeviceGetFieldValues with these names are 0,
// so each link's counters are read.
inline constexpr std::array nvlink_error_counters = {1, 4};         // recoveries, ECC errors
inline constexpr std::array nvlink_corrected_counters = {0, 2, 3};  // replays, CRC errors of flow control and of data
// Error counters of one link of NVLink 5: recoveries; malformed packets, overruns, receive errors, integrity errors,
// discards. Symbol errors that are corrected do not count.
inline constexpr std::array fields_nvlink5_errors = {215u};
inline constexpr std::array fields_nvlink5_corrected = {206u, 207u, 208u, 211u, 212u};
constexpr unsigned nvlink5 = 7;  // NVML_NVLINK_VERSION_5_0
constexpr int clock_sm = 1, clock_memory = 2;
// Time throttled by software's and hardware's temperature limit and by the power brake, in this order: CUDA 12.9 has
// them at 251 to 253, CUDA 13 at 269 to 271, and each has settings of power smoothing at the other's place.
constexpr unsigned field_throttled = 269, field_throttled_12 = 251;
inline constexpr std::array gpm_metrics_wanted = {2u, 5u, 10u};  // SM, any tensor core, DRAM, in percent

// A function of a library by its name, whatever its type; null if the library lacks it.
struct Symbol {
  void* address;
  template <typename Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(address);
  }
};
inline Symbol find(void* library, const char* name) { return {dlsym(library, name)}; }

// Every function that is used of a library that has been initialised; null if this driver lacks it.
struct Functions {
  explicit Functions(void* opened) : library(opened) {}
  ~Functions() {
    if (shutdown) shutdown();
    dlclose(library);
  }
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  void* const library;
  Return (*shutdown)() = find("nvmlShutdown");
  Return (*driver_version)(char*, unsigned) = find("nvmlSystemGetDriverVersion");
  Return (*cuda_version)(int*) = find("nvmlSystemGetCudaDriverVersion_v2");
  Return (*count)(unsigned*) = find("nvmlDeviceGetCount_v2");
  Return (*by_index)(unsigned, Handle*) = find("nvmlDeviceGetHandleByIndex_v2");
  Return (*by_uuid)(const char*, Handle*) = find("nvmlDeviceGetHandleByUUID");
  Return (*by_pci)(const char*, Handle*) = find("nvmlDeviceGetHandleByPciBusId_v2");
  Return (*name)(Handle, char*, unsigned) = find("nvmlDeviceGetName");
  Return (*uuid)(Handle, char*, unsigned) = find("nvmlDeviceGetUUID");
  Return (*serial)(Handle, char*, unsigned) = find("nvmlDeviceGetSerial");
  Return (*vbios)(Handle, char*, unsigned) = find("nvmlDeviceGetVbiosVersion");
  Return (*pci)(Handle, PciInfo*) = find("nvmlDeviceGetPciInfo_v3");
  Return (*clock)(Handle, int, unsigned*) = find("nvmlDeviceGetClockInfo");
  Return (*max_clock)(Handle, int, unsigned*) = find("nvmlDeviceGetMaxClockInfo");
  Return (*applications_clock)(Handle, int, unsigned*) = find("nvmlDeviceGetApplicationsClock");
  Return (*default_applications_clock)(Handle, int, unsigned*) = find("nvmlDeviceGetDefaultApplicationsClock");
  Return (*power)(Handle, unsigned*) = find("nvmlDeviceGetPowerUsage");
  Return (*power_limit)(Handle, unsigned*) = find("nvmlDeviceGetEnforcedPowerLimit");
  Return (*default_power_limit)(Handle, unsigned*) = find("nvmlDeviceGetPowerManagementDefaultLimit");
  Return (*energy)(Handle, unsigned long long*) = find("nvmlDeviceGetTotalEnergyConsumption");
  Return (*temperature)(Handle, int, unsigned*) = find("nvmlDeviceGetTemperature");
  Return (*throttle)(Handle, unsigned long long*) = find("nvmlDeviceGetCurrentClocksEventReasons",
                                                         "nvmlDeviceGetCurrentClocksThrottleReasons");
  Return (*utilization)(Handle, Utilization*) = find("nvmlDeviceGetUtilizationRates");
  Return (*memory)(Handle, MemoryInfo*) = find("nvmlDeviceGetMemoryInfo");
  Return (*fields)(Handle, int, FieldValue*) = find("nvmlDeviceGetFieldValues");
  Return (*ecc_mode)(Handle, int*, int*) = find("nvmlDeviceGetEccMode");
  Return (*ecc_errors)(Handle, int, int, unsigned long long*) = find("nvmlDeviceGetTotalEccErrors");
  Return (*remapped_rows)(Handle, unsigned*, unsigned*, unsigned*, unsigned*) = find("nvmlDeviceGetRemappedRows");
  Return (*mig_mode)(Handle, unsigned*, unsigned*) = find("nvmlDeviceGetMigMode");
  Return (*max_slices)(Handle, unsigned*) = find("nvmlDeviceGetMaxMigDeviceCount");
  Return (*slice)(Handle, unsigned, Handle*) = find("nvmlDeviceGetMigDeviceHandleByIndex");
  Return (*whole)(Handle, Handle*) = find("nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
  Return (*persistence_mode)(Handle, int*) = find("nvmlDeviceGetPersistenceMode");
  Return (*pcie_throughput)(Handle, int, unsigned*) = find("nvmlDeviceGetPcieThroughput");
  Return (*pcie_replays)(Handle, unsigned*) = find("nvmlDeviceGetPcieReplayCounter");
  Return (*link_generation)(Handle, unsigned*) = find("nvmlDeviceGetCurrPcieLinkGeneration");
  Return (*link_width)(Handle, unsigned*) = find("nvmlDeviceGetCurrPcieLinkWidth");
  Return (*max_link_generation)(Handle, unsigned*) = find("nvmlDeviceGetMaxPcieLinkGeneration");
  Return (*max_link_width)(Handle, unsigned*) = find("nvmlDeviceGetMaxPcieLinkWidth");
  Return (*nvlink_state)(Handle, unsigned, int*) = find("nvmlDeviceGetNvLinkState");
  Return (*nvlink_version)(Handle, unsigned, unsigned*) = find("nvmlDeviceGetNvLinkVersion");
  Return (*nvlink_errors)(Handle, unsigned, int, unsigned long long*) = find("nvmlDeviceGetNvLinkErrorCounter");
  Return (*processes)(Handle, unsigned*, ProcessInfo*) = find("nvmlDeviceGetComputeRunningProcesses_v3");
  Return (*mps_processes)(Handle, unsigned*, ProcessInfo*) = find("nvmlDeviceGetMPSComputeRunningProcesses_v3");
  Return (*event_set)(void**) = find("nvmlEventSetCreate");
  Return (*register_events)(Handle, unsigned long long, void*) = find("nvmlDeviceRegisterEvents");
  Return (*event_wait)(void*, EventData*, unsigned) = find("nvmlEventSetWait_v2");
  Return (*event_free)(void*) = find("nvmlEventSetFree");
  Return (*gpm_support)(Handle, GpmSupport*) = find("nvmlGpmQueryDeviceSupport");
  Return (*gpm_allocate)(void**) = find("nvmlGpmSampleAlloc");
  Return (*gpm_free)(void*) = find("nvmlGpmSampleFree");
  Return (*gpm_sample)(Handle, void*) = find("nvmlGpmSampleGet");
  Return (*gpm_metrics)(GpmMetrics*) = find("nvmlGpmMetricsGet");

 private:
  // Finds a function by the first of its names that the library has.
  Symbol find(const char* symbol, const char* earlier_symbol = nullptr) const {
    const Symbol found = nvml::find(library, symbol);
    return found.address || !earlier_symbol ? found : nvml::find(library, earlier_symbol);
  }
};

}  // namespace nvml

struct NvmlDevice::Api : nvml::Functions {
  using Functions::Functions;
};

// The text that a function writes into a buffer; empty if it refuses.
template <typename Ask>
std::string nvml_text(const Ask& ask_for) {
  std::array<char, 128> text{};
  const bool answered = ask_for(text.data(), static_cast<unsigned>(text.size())) == nvml::success;
  return answered ? std::string(text.data()) : std::string();
}

}  // namespace assay
