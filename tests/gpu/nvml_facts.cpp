// Prints what our binding of NVML takes for granted, one fact per line: "NAME NUMBER" for a constant, "TYPE size BYTES"
// and "TYPE.MEMBER offset BYTES" for a type, by the names of NVIDIA's binding for Python (facts_test.py compares them).
#include "harness/machine/nvml.h"
#include "harness/machine/nvml_api.h"

#include <cstddef>
#include <cstdio>
#include <initializer_list>

using namespace assay;
using namespace assay::nvml;

namespace {

struct Fact {
  const char* name;
  unsigned long long number;
};

void print(std::initializer_list<Fact> facts) {
  for (const Fact& fact : facts) std::printf("%s %llu\n", fact.name, fact.number);
}

unsigned long long bit(ThrottleReason reason) { return static_cast<unsigned long long>(reason); }

}  // namespace

int main() {
  print({{"NVML_SUCCESS", success},
         {"NVML_ERROR_GPU_IS_LOST", gpu_is_lost},
         {"NVML_ERROR_RESET_REQUIRED", reset_required},
         {"nvmlEventTypeXidCriticalError", event_xid},
         {"NVML_FI_DEV_POWER_AVERAGE", field_power_average},
         {"NVML_FI_DEV_POWER_INSTANT", field_power_instant},
         {"NVML_FI_DEV_MEMORY_TEMP", field_memory_temperature},
         {"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", field_nvlink_sent},
         {"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", field_nvlink_received},
         {"NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", field_nvlink5_sent},
         {"NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", field_nvlink5_received},
         {"NVML_NVLINK_ERROR_DL_RECOVERY", nvlink_error_counters[0]},
         {"NVML_NVLINK_ERROR_DL_ECC_DATA", nvlink_error_counters[1]},
         {"NVML_NVLINK_ERROR_DL_REPLAY", nvlink_corrected_counters[0]},
         {"NVML_NVLINK_ERROR_DL_CRC_FLIT", nvlink_corrected_counters[1]},
         {"NVML_NVLINK_ERROR_DL_CRC_DATA", nvlink_corrected_counters[2]},
         {"NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS", fields_nvlink5_errors[0]},
         {"NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS", fields_nvlink5_corrected[0]},
         {"NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS", fields_nvlink5_corrected[1]},
         {"NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS", fields_nvlink5_corrected[2]},
         {"NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", fields_nvlink5_corrected[3]},
         {"NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS", fields_nvlink5_corrected[4]},
         {"NVML_NVLINK_VERSION_5_0", nvlink5},
         {"NVML_CLOCK_SM", clock_sm},
         {"NVML_CLOCK_MEM", clock_memory},
         {"NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", field_throttled},
         {"NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", field_throttled + 1},
         {"NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", field_throttled + 2},
         {"NVML_GPM_METRIC_SM_UTIL", gpm_metrics_wanted[0]},
         {"NVML_GPM_METRIC_ANY_TENSOR_UTIL", gpm_metrics_wanted[1]},
         {"NVML_GPM_METRIC_DRAM_BW_UTIL", gpm_metrics_wanted[2]},
         {"nvmlClocksEventReasonGpuIdle", bit(ThrottleReason::idle)},
         {"nvmlClocksEventReasonApplicationsClocksSetting", bit(ThrottleReason::applications_clocks)},
         {"nvmlClocksEventReasonSwPowerCap", bit(ThrottleReason::power_cap)},
         {"nvmlClocksEventReasonHwSlowdown", bit(ThrottleReason::hardware_slowdown)},
         {"nvmlClocksEventReasonSyncBoost", bit(ThrottleReason::sync_boost)},
         {"nvmlClocksEventReasonSwThermalSlowdown", bit(ThrottleReason::software_thermal)},
         {"nvmlClocksEventReasonHwThermalSlowdown", bit(ThrottleReason::hardware_thermal)},
         {"nvmlClocksEventReasonHwPowerBrakeSlowdown", bit(ThrottleReason::power_brake)},
         {"nvmlClocksEventReasonDisplayClockSetting", bit(ThrottleReason::display_clocks)}});
  print({{"c_nvmlUtilization_t size", sizeof(Utilization)},
         {"c_nvmlMemory_t size", sizeof(MemoryInfo)},
         {"c_nvmlMemory_t.used offset", offsetof(MemoryInfo, used)},
         {"c_nvmlProcessInfo_v2_t size", sizeof(ProcessInfo)},
         {"c_nvmlProcessInfo_v2_t.usedGpuMemory offset", offsetof(ProcessInfo, used_bytes)},
         {"c_nvmlFieldValue_t size", sizeof(FieldValue)},
         {"c_nvmlFieldValue_t.scopeId offset", offsetof(FieldValue, scope)},
         {"c_nvmlFieldValue_t.valueType offset", offsetof(FieldValue, type)},
         {"c_nvmlFieldValue_t.nvmlReturn offset", offsetof(FieldValue, result)},
         {"c_nvmlFieldValue_t.value offset", offsetof(FieldValue, value)},
         {"nvmlPciInfo_t size", sizeof(PciInfo)},
         {"nvmlPciInfo_t.domain offset", offsetof(PciInfo, domain)},
         {"nvmlPciInfo_t.pciDeviceId offset", offsetof(PciInfo, pci_device_id)},
         {"c_nvmlEventData_t size", sizeof(EventData)},
         {"c_nvmlEventData_t.eventType offset", offsetof(EventData, type)},
         {"c_nvmlEventData_t.eventData offset", offsetof(EventData, data)},
         {"c_nvmlGpmMetric_t size", sizeof(GpmMetric)},
         {"c_nvmlGpmMetric_t.nvmlReturn offset", offsetof(GpmMetric, result)},
         {"c_nvmlGpmMetric_t.value offset", offsetof(GpmMetric, value)},
         {"c_nvmlGpmMetricsGet_t size", sizeof(GpmMetrics)},
         {"c_nvmlGpmMetricsGet_t.metrics offset", offsetof(GpmMetrics, metrics)},
         {"c_nvmlGpmSupport_t size", sizeof(GpmSupport)}});
}
