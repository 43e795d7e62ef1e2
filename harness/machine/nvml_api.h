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

constexpr unsigned long long event_xid = 0x8;

}  // namespace nvml

// Every function that is used; null if this driver lacks it.
struct NvmlDevice::Api {
  using Return = nvml::Return;
  using Handle = nvml::Handle;
  using Utilization = nvml::Utilization;
  using MemoryInfo = nvml::MemoryInfo;
  using ProcessInfo = nvml::ProcessInfo;
  using FieldValue = nvml::FieldValue;
  using PciInfo = nvml::PciInfo;
  using EventData = nvml::EventData;
  using GpmMetrics = nvml::GpmMetrics;
  using GpmSupport = nvml::GpmSupport;

  void* library = nullptr;
  Return (*shutdown)() = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*cuda_version)(int*) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*by_index)(unsigned, Handle*) = nullptr;
  Return (*by_uuid)(const char*, Handle*) = nullptr;
  Return (*by_pci)(const char*, Handle*) = nullptr;
  Return (*name)(Handle, char*, unsigned) = nullptr;
  Return (*uuid)(Handle, char*, unsigned) = nullptr;
  Return (*serial)(Handle, char*, unsigned) = nullptr;
  Return (*pci)(Handle, PciInfo*) = nullptr;
  Return (*clock)(Handle, int, unsigned*) = nullptr;
  Return (*max_clock)(Handle, int, unsigned*) = nullptr;
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
  Return (*max_slices)(Handle, unsigned*) = nullptr;
  Return (*slice)(Handle, unsigned, Handle*) = nullptr;
  Return (*whole)(Handle, Handle*) = nullptr;
  Return (*persistence_mode)(Handle, int*) = nullptr;
  Return (*pcie_throughput)(Handle, int, unsigned*) = nullptr;
  Return (*pcie_replays)(Handle, unsigned*) = nullptr;
  Return (*link_generation)(Handle, unsigned*) = nullptr;
  Return (*link_width)(Handle, unsigned*) = nullptr;
  Return (*max_link_generation)(Handle, unsigned*) = nullptr;
  Return (*max_link_width)(Handle, unsigned*) = nullptr;
  Return (*nvlink_state)(Handle, unsigned, int*) = nullptr;
  Return (*nvlink_version)(Handle, unsigned, unsigned*) = nullptr;
  Return (*nvlink_errors)(Handle, unsigned, int, unsigned long long*) = nullptr;
  Return (*processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
  Return (*mps_processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
  Return (*event_set)(void**) = nullptr;
  Return (*register_events)(Handle, unsigned long long, void*) = nullptr;
  Return (*event_wait)(void*, EventData*, unsigned) = nullptr;
  Return (*event_free)(void*) = nullptr;
  Return (*gpm_support)(Handle, GpmSupport*) = nullptr;
  Return (*gpm_allocate)(void**) = nullptr;
  Return (*gpm_free)(void*) = nullptr;
  Return (*gpm_sample)(Handle, void*) = nullptr;
  Return (*gpm_metrics)(GpmMetrics*) = nullptr;

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
    find(cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
    find(count, "nvmlDeviceGetCount_v2");
    find(by_index, "nvmlDeviceGetHandleByIndex_v2");
    find(by_uuid, "nvmlDeviceGetHandleByUUID");
    find(by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
    find(name, "nvmlDeviceGetName");
    find(uuid, "nvmlDeviceGetUUID");
    find(serial, "nvmlDeviceGetSerial");
    find(pci, "nvmlDeviceGetPciInfo_v3");
    find(clock, "nvmlDeviceGetClockInfo");
    find(max_clock, "nvmlDeviceGetMaxClockInfo");
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
    find(max_slices, "nvmlDeviceGetMaxMigDeviceCount");
    find(slice, "nvmlDeviceGetMigDeviceHandleByIndex");
    find(whole, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    find(persistence_mode, "nvmlDeviceGetPersistenceMode");
    find(pcie_throughput, "nvmlDeviceGetPcieThroughput");
    find(pcie_replays, "nvmlDeviceGetPcieReplayCounter");
    find(link_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
    find(link_width, "nvmlDeviceGetCurrPcieLinkWidth");
    find(max_link_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    find(max_link_width, "nvmlDeviceGetMaxPcieLinkWidth");
    find(nvlink_state, "nvmlDeviceGetNvLinkState");
    find(nvlink_version, "nvmlDeviceGetNvLinkVersion");
    find(nvlink_errors, "nvmlDeviceGetNvLinkErrorCounter");
    find(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    find(mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v3");
    find(event_set, "nvmlEventSetCreate");
    find(register_events, "nvmlDeviceRegisterEvents");
    find(event_wait, "nvmlEventSetWait_v2");
    find(event_free, "nvmlEventSetFree");
    find(gpm_support, "nvmlGpmQueryDeviceSupport");
    find(gpm_allocate, "nvmlGpmSampleAlloc");
    find(gpm_free, "nvmlGpmSampleFree");
    find(gpm_sample, "nvmlGpmSampleGet");
    find(gpm_metrics, "nvmlGpmMetricsGet");
  }
};

// The text that a function writes into a buffer; empty if it refuses.
template <typename Ask>
std::string nvml_text(const Ask& ask_for) {
  std::array<char, 128> text{};
  const bool answered = ask_for(text.data(), static_cast<unsigned>(text.size())) == nvml::success;
  return answered ? std::string(text.data()) : std::string();
}

}  // namespace assay
