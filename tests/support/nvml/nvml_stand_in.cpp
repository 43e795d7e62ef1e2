// A stand-in for libnvidia-ml.so.1 that follows a script, so that code using NVML can be tested on any machine.
//
// $ASSAY_NVML_SCRIPT names a file with lines "NAME VALUE": the number to return, in NVML's units (MHz, mW, mJ, ...).
// "NAME VALUE +RATE" grows by RATE per second; "NAME VALUE at SECONDS" applies from then on (the last applicable line
// wins); "NAME refused" returns not supported. "xid NUMBER" and "xid NUMBER at SECONDS" are events, "client PID BYTES"
// is a process. "init CODE" is the result of nvmlInit. "gpm 1" gives the GPU activity counters, whose metrics are
// percentages: "sm_active 80". "cuda_version" decides which numbers the counters of throttled time have. The file is
// read again at each call; seconds count from loading the library.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int success = 0, invalid_argument = 2, not_supported = 3, not_found = 6, timeout = 10, gpu_is_lost = 15;
constexpr int version_mismatch = 25;

double seconds() {
  static const auto start = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
const double at_load = seconds();

std::vector<std::vector<std::string>> script() {
  std::vector<std::vector<std::string>> lines;
  const char* path = std::getenv("ASSAY_NVML_SCRIPT");
  std::ifstream file(path ? path : "");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    if (!all.empty()) lines.push_back(all);
  }
  return lines;
}

// The script's current value of `name`; absent if refused or not mentioned.
std::optional<double> value_of(const std::string& name) {
  std::optional<double> value;
  for (const auto& line : script()) {
    if (line[0] != name || line.size() < 2) continue;
    if (line[1] == "refused") {
      value.reset();
      continue;
    }
    double given = std::stod(line[1]);
    if (line.size() == 3) given += std::stod(line[2]) * seconds();
    if (line.size() == 4 && seconds() < std::stod(line[3])) continue;
    value = given;
  }
  return value;
}

template <typename T>
int answer(const char* name, T* out) {
  const auto value = value_of(name);
  if (!value) return not_supported;
  *out = static_cast<T>(*value);
  return success;
}

int text(const char* words, char* out, unsigned size) {
  std::snprintf(out, size, "%s", words);
  return success;
}

// Their addresses are the handles: a GPU, and a part of it (MIG), of which NVML counts no errors.
int gpu = 0, slice = 0;

struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  unsigned long long value;
};
struct Pci {
  char old_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
struct Set {
  std::size_t reported = 0;  // events before the set was created, or already returned
};

// One reading of the activity counters: its number, from 1.
struct GpmSample {
  int number = 0;
};
int gpm_readings = 0;

struct GpmMetric {
  unsigned id;
  int result;
  double value;
  const char* texts[3];
};
struct GpmMetrics {
  unsigned version, count;
  const GpmSample* earlier;
  const GpmSample* later;
  GpmMetric metrics[3];  // the first ones
};

// Fields that the driver of that CUDA version has in 251 to 253 or 269 to 271; the others are settings.
const char* throttle_field(unsigned field) {
  const unsigned first = value_of("cuda_version").value_or(0) >= 13000 ? 269 : 251;
  return field == first       ? "throttled_software_thermal"
         : field == first + 1 ? "throttled_hardware_thermal"
         : field == first + 2 ? "throttled_power_brake"
                              : "power_smoothing";
}

// The events so far.
std::vector<unsigned long long> xids() {
  std::vector<unsigned long long> happened;
  for (const auto& line : script())
    if (line[0] == "xid" && (line.size() == 2 || (line.size() == 4 && seconds() >= std::stod(line[3]))))
      happened.push_back(std::stoull(line[1]));
  return happened;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return static_cast<int>(value_of("init").value_or(0)); }
int nvmlShutdown() { return success; }
const char* nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "an error of the stand-in"; }
int nvmlSystemGetDriverVersion(char* out, unsigned size) { return text("999.1", out, size); }
int nvmlSystemGetCudaDriverVersion_v2(int* version) { return answer("cuda_version", version); }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(value_of("count").value_or(1));
  return success;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** handle) {
  *handle = &gpu;
  return success;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  if (value_of("unknown_uuid")) return not_found;
  *handle = std::string_view(uuid).starts_with("MIG-") ? &slice : &gpu;
  return success;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) { return answer("max_slices", count); }
int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned index, void** handle) {
  if (index >= value_of("slices").value_or(0)) return not_found;
  *handle = &slice;
  return success;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* device, void** handle) {
  if (device != &slice) return not_supported;
  *handle = &gpu;
  return success;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** handle) {
  if (value_of("unknown_pci")) return not_found;
  *handle = &gpu;
  return success;
}
int nvmlDeviceGetName(void*, char* out, unsigned size) { return text("Stand-in GPU", out, size); }
int nvmlDeviceGetUUID(void* device, char* out, unsigned size) {
  return text(device == &slice ? "MIG-stand-in" : "GPU-stand-in", out, size);
}
int nvmlDeviceGetVbiosVersion(void*, char* out, unsigned size) { return text("96.00.74.00.01", out, size); }
int nvmlDeviceGetPciInfo_v3(void*, Pci* pci) {
  *pci = {"", 0, 0x1b, 0, 0x233510de, 0, ""};
  return success;
}
int nvmlDeviceGetPersistenceMode(void*, int* mode) { return answer("persistence", mode); }
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) { return answer(type == 2 ? "memory_clock" : "clock", mhz); }
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* mhz) { return answer("max_clock", mhz); }
int nvmlDeviceGetApplicationsClock(void*, int, unsigned* mhz) { return answer("applications_clock", mhz); }
int nvmlDeviceGetDefaultApplicationsClock(void*, int, unsigned* mhz) {
  return answer("default_applications_clock", mhz);
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) { return answer("power", milliwatts); }
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) { return answer("power_limit", milliwatts); }
int nvmlDeviceGetPowerManagementDefaultLimit(void*, unsigned* milliwatts) {
  return answer("default_power_limit", milliwatts);
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  return answer("energy", millijoules);
}
int nvmlDeviceGetTemperature(void*, int, unsigned* degrees) { return answer("temperature", degrees); }
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) { return answer("throttle", reasons); }
int nvmlDeviceGetUtilizationRates(void*, unsigned* shares) {
  shares[1] = 0;
  return answer("utilisation", &shares[0]);
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  if (value_of("lost")) return gpu_is_lost;
  memory[0] = memory[1] = 0;
  return answer("memory_used", &memory[2]);
}
int nvmlDeviceGetFieldValues(void*, int count, FieldValue* fields) {
  for (int i = 0; i < count; ++i) {
    const char* name = fields[i].field == 185   ? "power_average"
                       : fields[i].field == 186 ? "power_instant"
                       : fields[i].field == 138 ? "nvlink_sent"
                       : fields[i].field == 139 ? "nvlink_received"
                       : fields[i].field == 202 ? "nvlink5_sent"
                       : fields[i].field == 208 ? "nvlink5_errors"
                       : fields[i].field == 215 ? "nvlink5_recoveries"
                       : fields[i].field == 82  ? "memory_temperature"
                       : fields[i].field > 250  ? throttle_field(fields[i].field)
                                                : "";
    fields[i].type = 3;  // unsigned long long
    fields[i].result = answer(name, &fields[i].value);
    const bool of_one_link = fields[i].field > 200 && fields[i].field < 251;
    if (of_one_link && fields[i].scope >= value_of("nvlinks").value_or(0)) fields[i].result = not_supported;
  }
  return success;
}
int nvmlDeviceGetEccMode(void*, int* now, int* pending) {
  *pending = 0;
  return answer("ecc", now);
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int, unsigned long long* count) {
  if (device == &slice) return not_supported;
  return answer(type == 1 ? "ecc_uncorrected" : "ecc_corrected", count);
}
int nvmlDeviceGetRemappedRows(void*, unsigned* corrected, unsigned* uncorrected, unsigned* pending, unsigned* failed) {
  *corrected = *failed = 0;
  *pending = static_cast<unsigned>(value_of("remap_pending").value_or(0));
  return answer("rows_remapped", uncorrected);
}
int nvmlDeviceGetMigMode(void*, unsigned* now, unsigned* pending) {
  *pending = 0;
  return answer("mig", now);
}
int nvmlDeviceGetPcieThroughput(void*, int counter, unsigned* kilobytes) {
  return answer(counter == 0 ? "pcie_sent" : "pcie_received", kilobytes);
}
int nvmlDeviceGetPcieReplayCounter(void*, unsigned* count) { return answer("pcie_replays", count); }
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* value) { return answer("link_generation", value); }
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* value) { return answer("link_width", value); }
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* value) { return answer("max_link_generation", value); }
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* value) { return answer("max_link_width", value); }
int nvmlDeviceGetNvLinkState(void*, unsigned link, int* active) {
  *active = link < value_of("nvlinks").value_or(0);
  return success;
}
int nvmlDeviceGetNvLinkVersion(void*, unsigned, unsigned* version) { return answer("nvlink_version", version); }
int nvmlDeviceGetNvLinkErrorCounter(void*, unsigned, int counter, unsigned long long* count) {
  *count = 0;
  if (value_of("nvlink5_errors") && !value_of("nvlink_version")) return not_supported;
  const char* names[] = {"nvlink_replays", "nvlink_recoveries", "nvlink_crc_flit", "nvlink_crc_data", "nvlink_ecc"};
  *count = static_cast<unsigned long long>(value_of(names[counter]).value_or(0));
  return success;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* processes) {
  unsigned found = 0;
  for (const auto& line : script())
    if (line[0] == "client" && line.size() == 3 && found < *count)
      processes[found++] = {static_cast<unsigned>(std::stoul(line[1])), std::stoull(line[2]), 0, 0};
  *count = found;
  return success;
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void*, unsigned* count, Process*) { return answer("mps", count); }
int nvmlEventSetCreate(void** set) {
  if (value_of("no_events")) return not_supported;
  *set = new Set{xids().size()};
  return success;
}
int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) { return success; }
int nvmlEventSetWait_v2(void* handle, Event* event, unsigned) {
  Set& set = *static_cast<Set*>(handle);
  const auto happened = xids();
  if (set.reported >= happened.size()) return timeout;
  *event = {&gpu, 0x8, happened[set.reported++], 0, 0};
  return success;
}
int nvmlEventSetFree(void* set) {
  delete static_cast<Set*>(set);
  return success;
}
int nvmlGpmQueryDeviceSupport(void*, unsigned* support) {
  if (support[0] != 1) return version_mismatch;
  support[1] = value_of("gpm") ? 1 : 0;
  return success;
}
int nvmlGpmSampleAlloc(GpmSample** sample) {
  *sample = new GpmSample;
  return success;
}
int nvmlGpmSampleFree(GpmSample* sample) {
  delete sample;
  return success;
}
int nvmlGpmSampleGet(void*, GpmSample* sample) {
  if (!value_of("gpm")) return not_supported;
  sample->number = ++gpm_readings;
  return success;
}
int nvmlGpmMetricsGet(GpmMetrics* wanted) {
  if (wanted->version != 1) return version_mismatch;
  if (wanted->count > 3 || wanted->earlier->number == 0 || wanted->earlier->number >= wanted->later->number)
    return invalid_argument;
  for (unsigned i = 0; i < wanted->count; ++i) {
    GpmMetric& metric = wanted->metrics[i];
    metric.result = answer(metric.id == 2    ? "sm_active"
                           : metric.id == 5  ? "tensor_active"
                           : metric.id == 10 ? "dram_active"
                                             : "",
                           &metric.value);
  }
  return success;
}

}  // extern "C"
