// Stand-ins of the CUDA runtime's functions for devices, errors and kernels, and the script of faults.
#include "tests/emulation/runtime.h"

#include "harness/core/error.h"
#include "tests/emulation/block.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace assay::emulation {

namespace {

std::atomic<cudaError_t> lost{cudaSuccess};
thread_local cudaError_t last = cudaSuccess;
thread_local int device = 0;

constexpr std::size_t static_shared_limit = std::size_t{48} << 10;
constexpr std::size_t optin_shared_limit = std::size_t{227} << 10;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

int number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  ASSAY_CHECK(error == std::errc{} && end == text.data() + text.size(), "ASSAY_EMULATION: {} is not an integer", text);
  return value;
}

std::map<std::string, std::string, std::less<>> read_script() {
  constexpr std::string_view known[] = {
      "no_driver",      "driver",      "devices",       "capability",  "memory",       "peers",
      "kernel_fault",   "count_error", "context_error", "cudnn",       "fusion_error", "fusion_loses_device",
      "gate_times_out", "numa_node",   "nccl",          "nccl_memory", "nccl_windows"};
  std::map<std::string, std::string, std::less<>> script;
  const char* text = std::getenv("ASSAY_EMULATION");
  for (const std::string& word : words_of(text ? text : "")) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    ASSAY_CHECK(std::find(std::begin(known), std::end(known), name) != std::end(known),
                "ASSAY_EMULATION: unknown word '{}'", name);
    script[name] = equals < word.size() ? word.substr(equals + 1) : "";
  }
  return script;
}

// The driver version that the script gives as 12.4, in the runtime's format: 12040.
int driver_version() {
  if (scripted("no_driver")) return 0;
  const auto text = scripted("driver");
  if (!text) return CUDART_VERSION;
  const std::size_t dot = std::min(text->find('.'), text->size());
  return 1000 * number(text->substr(0, dot)) + (dot < text->size() ? 10 * number(text->substr(dot + 1)) : 0);
}

// The error of every call that needs a device.
cudaError_t device_error() {
  if (driver_version() == 0 || driver_version() / 1000 < CUDART_VERSION / 1000) return cudaErrorInsufficientDriver;
  if (visible_devices() == 0) return cudaErrorNoDevice;
  return sticky_error();
}

// The error number that the script makes a call return.
cudaError_t scripted_error(std::string_view name) {
  const auto text = scripted(name);
  return text ? static_cast<cudaError_t>(number(*text)) : cudaSuccess;
}

// The number that begins the UUID of a device: GPU-00000003-656d-... is the fourth.
std::string uuid_prefix(int place) {
  constexpr std::string_view digits = "0123456789abcdef";
  return std::string("GPU-000000") + digits[static_cast<std::size_t>(place / 16)] +
         digits[static_cast<std::size_t>(place % 16)];
}

// The devices of the host that the process sees, in its order.
std::vector<int> visible_list() {
  const int all = number(scripted("devices").value_or("1"));
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<int> list;
  for (int i = 0; !visible && i < all; ++i) list.push_back(i);
  for (const std::string& word : words_of(visible ? visible : "")) {
    int place = 0;
    if (word.starts_with("GPU-"))
      while (place < all && !word.starts_with(uuid_prefix(place))) ++place;
    else if (word.find_first_not_of("0123456789") == std::string::npos)
      place = number(word);
    else
      break;
    // Like the driver: entries after the first invalid one are ignored.
    if (place >= all) break;
    list.push_back(place);
  }
  return list;
}

int capability() {
  static const int value = number(scripted("capability").value_or("90"));
  return value;
}

int numa_node() { return number(scripted("numa_node").value_or("-1")); }

}  // namespace

std::optional<std::string> scripted(std::string_view name) {
  static const auto& script = *new std::map<std::string, std::string, std::less<>>(read_script());
  const auto found = script.find(name);
  return found == script.end() ? std::nullopt : std::optional(found->second);
}

bool gate_times_out() {
  static std::atomic<int> left{number(scripted("gate_times_out").value_or("0"))};
  return left > 0 && left-- > 0;
}

std::uint64_t bytes_of(std::string_view text) {
  for (const auto& [unit, shift] : {std::pair{"KiB", 10}, {"MiB", 20}, {"GiB", 30}})
    if (text.ends_with(unit)) return static_cast<std::uint64_t>(number(text.substr(0, text.size() - 3))) << shift;
  return static_cast<std::uint64_t>(number(text));
}

int visible_devices() { return static_cast<int>(visible_list().size()); }

int current_device() { return device; }

cudaError_t report(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

cudaError_t sticky_error() { return lost; }
void lose_context(cudaError_t error) {
  cudaError_t none = cudaSuccess;
  lost.compare_exchange_strong(none, error);
}

std::size_t& shared_limit(const void* kernel) {
  static std::mutex mutex;
  static auto& limits = *new std::map<const void*, std::size_t>;
  const std::lock_guard lock(mutex);
  return limits.try_emplace(kernel, static_shared_limit).first->second;
}

void check_argument(const void* kernel, std::size_t index, const void* address) {
  if (!address) return;
  const auto refuse = [&](const std::string& what) {
    throw Error(fmt::format("argument {} of kernel {} is {}", index + 1, kernel_name(kernel), what));
  };
  if (!known_to_device(address)) refuse("host memory that is not pinned");
  if (const int owner = owner_of(address); owner >= 0 && owner != device && !has_access(device, owner))
    refuse(fmt::format("memory of GPU {}, to which GPU {} has no access", owner, device));
}

cudaError_t check_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return report(error);
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0 || threads > 1024 || block.z > 64 || grid.y > 65535 ||
      grid.z > 65535 || grid.x > 0x7fffffff)
    return report(cudaErrorInvalidConfiguration);
  if (shared > shared_limit(kernel)) return report(cudaErrorInvalidValue);
  return cudaSuccess;
}

namespace {
struct Trap {};
}  // namespace

void trap() { throw Trap(); }

void run_kernel(const void* kernel, dim3 grid, dim3 block, std::size_t shared, void (*thread)(void*), void* context) {
  static const auto& fault = *new std::optional<std::string>(scripted("kernel_fault"));
  if (sticky_error() != cudaSuccess) return;
  if (fault && std::string_view(kernel_name(kernel)).find(*fault) != std::string_view::npos)
    return lose_context(cudaErrorIllegalAddress);
  try {
    run_grid(kernel, grid, block, shared, thread, context);
  } catch (const Trap&) {
    lose_context(cudaErrorLaunchFailure);
  }
}

}  // namespace assay::emulation

using namespace assay::emulation;

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define ASSAY_NAME(e) \
  case e: return #e;
    ASSAY_NAME(cudaSuccess)
    ASSAY_NAME(cudaErrorInvalidValue)
    ASSAY_NAME(cudaErrorMemoryAllocation)
    ASSAY_NAME(cudaErrorInvalidConfiguration)
    ASSAY_NAME(cudaErrorInsufficientDriver)
    ASSAY_NAME(cudaErrorNoDevice)
    ASSAY_NAME(cudaErrorInvalidDevice)
    ASSAY_NAME(cudaErrorDevicesUnavailable)
    ASSAY_NAME(cudaErrorSystemNotReady)
    ASSAY_NAME(cudaErrorSystemDriverMismatch)
    ASSAY_NAME(cudaErrorNoKernelImageForDevice)
    ASSAY_NAME(cudaErrorIllegalAddress)
    ASSAY_NAME(cudaErrorLaunchFailure)
    ASSAY_NAME(cudaErrorInvalidResourceHandle)
    ASSAY_NAME(cudaErrorIllegalState)
    ASSAY_NAME(cudaErrorNotReady)
    ASSAY_NAME(cudaErrorNotSupported)
    ASSAY_NAME(cudaErrorPeerAccessAlreadyEnabled)
    ASSAY_NAME(cudaErrorPeerAccessNotEnabled)
    ASSAY_NAME(cudaErrorPeerAccessUnsupported)
    ASSAY_NAME(cudaErrorHostMemoryAlreadyRegistered)
    ASSAY_NAME(cudaErrorHostMemoryNotRegistered)
    ASSAY_NAME(cudaErrorStreamCaptureUnsupported)
    ASSAY_NAME(cudaErrorStreamCaptureInvalidated)
    ASSAY_NAME(cudaErrorStreamCaptureMerge)
    ASSAY_NAME(cudaErrorStreamCaptureUnmatched)
    ASSAY_NAME(cudaErrorStreamCaptureUnjoined)
    ASSAY_NAME(cudaErrorStreamCaptureIsolation)
    ASSAY_NAME(cudaErrorStreamCaptureImplicit)
    ASSAY_NAME(cudaErrorStreamCaptureWrongThread)
    ASSAY_NAME(cudaErrorCapturedEvent)
#undef ASSAY_NAME
    default: return "cudaErrorUnknown";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorNoKernelImageForDevice: return "no kernel image is available for execution on the device";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnjoined: return "capturing stream has unjoined work";
    case cudaErrorCapturedEvent: return "operation not permitted on an event last recorded in a capturing stream";
    default: return cudaGetErrorName(error);
  }
}

cudaError_t cudaGetLastError() {
  if (sticky_error() != cudaSuccess) return sticky_error();
  return std::exchange(last, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() { return sticky_error() != cudaSuccess ? sticky_error() : last; }

cudaError_t cudaDriverGetVersion(int* version) {
  *version = driver_version();
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (const cudaError_t error = device_error(); error != cudaSuccess) return report(error);
  if (const cudaError_t error = scripted_error("count_error"); error != cudaSuccess) return report(error);
  *count = visible_devices();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return report(error);
  if (number < 0 || number >= visible_devices()) return report(cudaErrorInvalidDevice);
  device = number;
  return report(scripted_error("context_error"));
}
cudaError_t cudaInitDevice(int number, unsigned, unsigned) { return cudaSetDevice(number); }
cudaError_t cudaSetDeviceFlags(unsigned) { return report(device_error()); }
cudaError_t cudaGetDevice(int* number) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return report(error);
  *number = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return report(error);
  return report(device_error());
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int number) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return report(error);
  if (number < 0 || number >= visible_devices()) return report(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMultiProcessorCount: *value = 4; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = 32; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(static_shared_limit); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(optin_shared_limit); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = static_cast<int>(optin_shared_limit) + 1024; break;
    case cudaDevAttrL2CacheSize: *value = 1 << 20; break;
    case cudaDevAttrComputeCapabilityMajor: *value = capability() / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = capability() % 10; break;
    case cudaDevAttrClockRate: *value = 1'000'000; break;        // kHz
    case cudaDevAttrMemoryClockRate: *value = 1'000'000; break;  // kHz
    case cudaDevAttrGlobalMemoryBusWidth: *value = 64; break;    // bits
    case cudaDevAttrAsyncEngineCount: *value = 2; break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrCanMapHostMemory: *value = 1; break;
    case cudaDevAttrPciDomainId: *value = 0; break;
    case cudaDevAttrPciBusId: *value = 0xe0 + visible_list()[static_cast<std::size_t>(number)]; break;
    case cudaDevAttrPciDeviceId: *value = 0; break;
    case cudaDevAttrHostNumaId: *value = numa_node(); break;
    default: *value = 0;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    cudaDeviceGetAttribute(&value, which, number);
    return value;
  };
  int major = 0;
  if (const cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number);
      error != cudaSuccess)
    return error;
  *properties = {};
  std::strncpy(properties->name, device_name, sizeof properties->name - 1);
  std::memcpy(properties->uuid.bytes, "\0\0\0\0emulated-gpu", sizeof properties->uuid.bytes);
  properties->uuid.bytes[3] = static_cast<char>(visible_list()[static_cast<std::size_t>(number)]);
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  properties->totalGlobalMem = total;
  properties->sharedMemPerBlock = static_shared_limit;
  properties->sharedMemPerBlockOptin = optin_shared_limit;
  properties->sharedMemPerMultiprocessor = optin_shared_limit + 1024;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  properties->maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024, properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff, properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->major = major;
  properties->minor = attribute(cudaDevAttrComputeCapabilityMinor);
  properties->multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
  properties->l2CacheSize = attribute(cudaDevAttrL2CacheSize);
  properties->memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
  properties->asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
  properties->unifiedAddressing = properties->managedMemory = properties->canMapHostMemory = 1;
  properties->concurrentKernels = properties->memoryPoolsSupported = 1;
  properties->pciBusID = attribute(cudaDevAttrPciBusId);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int number) {
  int bus = 0;
  if (const cudaError_t error = cudaDeviceGetAttribute(&bus, cudaDevAttrPciBusId, number); error != cudaSuccess)
    return error;
  const std::string id = fmt::format("0000:{:02X}:00.0", bus);
  if (static_cast<std::size_t>(bytes) <= id.size()) return report(cudaErrorInvalidValue);
  std::strcpy(text, id.c_str());
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return report(device_error());
}
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return report(device_error()); }
cudaError_t cudaCtxResetPersistingL2Cache() { return report(device_error()); }

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int, int) {
  *value = attribute == cudaDevP2PAttrAccessSupported;
  return report(device_error());
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return report(error);
  if (capability() < 80) return report(cudaErrorNoKernelImageForDevice);
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->binaryVersion = attributes->ptxVersion = capability();
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(shared_limit(kernel));
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (const cudaError_t error = device_error(); error != cudaSuccess) return report(error);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > optin_shared_limit) return report(cudaErrorInvalidValue);
  shared_limit(kernel) = static_cast<std::size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return report(device_error()); }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads, size_t shared,
                                                                   unsigned) {
  const int by_threads = threads > 0 ? 2048 / threads : 0;
  const int by_shared = shared > 0 ? static_cast<int>((optin_shared_limit + 1024) / (shared + 1024)) : by_threads;
  *blocks = std::min({by_threads, by_shared, 32});
  return report(device_error());
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared, 0);
}
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

}  // extern "C"
