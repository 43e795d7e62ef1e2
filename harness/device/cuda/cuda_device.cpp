// CudaDevice: streams, events, graphs and memory of the CUDA runtime.
#include "harness/device/cuda/cuda_device.h"

#include "harness/core/out_of_memory.h"
#include "harness/device/cpu/cpu_device.h"
#include "harness/device/cpu/near_node.h"
#include "harness/device/cuda/check.h"
#include "harness/device/cuda/gate.h"
#include "harness/device/cuda/host_gate.h"
#include "harness/device/cuda/native.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>

namespace assay::cuda {

namespace {

std::atomic<int> own_gpu{-1};

class CudaStream final : public Stream {
 public:
  explicit CudaStream(int priority = 0) {
    ASSAY_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority));
  }
  ~CudaStream() override { cudaStreamDestroy(stream_); }
  void synchronize() override { ASSAY_CUDA(cudaStreamSynchronize(stream_)); }
  void wait(Event& event) override;
  void* native() override { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent final : public Event {
 public:
  CudaEvent() { ASSAY_CUDA(cudaEventCreate(&event_)); }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  void record(Stream& stream) override { ASSAY_CUDA(cudaEventRecord(event_, cuda::native(stream))); }
  void stamp(Stream& stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    ASSAY_CUDA(cudaStreamIsCapturing(cuda::native(stream), &status));
    const bool captured = status == cudaStreamCaptureStatusActive;
    ASSAY_CUDA(cudaEventRecordWithFlags(event_, cuda::native(stream),
                                        captured ? cudaEventRecordExternal : cudaEventRecordDefault));
  }
  void synchronize() override { ASSAY_CUDA(cudaEventSynchronize(event_)); }
  double seconds_since(const Event& start) const override {
    float milliseconds = 0;
    ASSAY_CUDA(cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(start).event_, event_));
    return 1e-3 * static_cast<double>(milliseconds);
  }
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

void CudaStream::wait(Event& event) {
  ASSAY_CUDA(cudaStreamWaitEvent(stream_, static_cast<CudaEvent&>(event).event(), 0));
}

class CudaGraph final : public Graph {
 public:
  // Without the flag every node runs at the priority of the stream that the graph is launched into.
  explicit CudaGraph(cudaGraph_t graph) {
    ASSAY_CUDA(cudaGraphInstantiate(&exec_, graph, cudaGraphInstantiateFlagUseNodePriority));
  }
  ~CudaGraph() override { cudaGraphExecDestroy(exec_); }
  void launch(Stream& stream) override { ASSAY_CUDA(cudaGraphLaunch(exec_, cuda::native(stream))); }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

struct MemoryState {
  std::size_t free = 0;
  std::size_t total = 0;
};
MemoryState memory_state() {
  use_own_gpu();
  MemoryState state;
  ASSAY_CUDA(cudaMemGetInfo(&state.free, &state.total));
  return state;
}

// A thread's first CUDA call would otherwise create a context on GPU 0, whichever GPU owns this memory.
template <cudaError_t (*free_memory)(void*)>
void release(void* data, std::size_t) {
  const int gpu = own_gpu;
  if (gpu >= 0) cudaSetDevice(gpu);
  free_memory(data);
}

Buffer allocate_device(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    const MemoryState state = memory_state();
    throw Error(fmt::format("out of device memory: {} bytes requested, {} free of {}", bytes, state.free, state.total));
  }
  ASSAY_CUDA(error);
  return Buffer(data, bytes, release<cudaFree>);
}

// On the GPU's own node: a copy from the far socket's memory is slower.
Buffer allocate_pinned(std::size_t bytes, std::optional<int> node) {
  const cpu::RunsOnNode near(node);
  void* data = nullptr;
  const cudaError_t error = cudaHostAlloc(&data, bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory(fmt::format("out of memory: {} bytes of pinned host memory requested", bytes));
  }
  ASSAY_CUDA(error);
  return Buffer(data, bytes, release<cudaFreeHost>);
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string visible_devices() {
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  return value ? fmt::format("CUDA_VISIBLE_DEVICES={}", value) : std::string("CUDA_VISIBLE_DEVICES is not set");
}

// Explains CUDA's terse errors about an unusable driver, with the fix; empty for other errors.
std::string driver_trouble(cudaError_t error) {
  switch (error) {
    case cudaErrorStubLibrary:
      return "the toolkit's stub of libcuda.so.1 is loaded, not the driver's: remove its folder (lib64/stubs) from "
             "LD_LIBRARY_PATH";
    case cudaErrorSystemNotReady:
      return "the driver is waiting for the NVSwitches to be set up: check that the driver's version of "
             "nvidia-fabricmanager runs";
    case cudaErrorSystemDriverMismatch:
      return "libcuda.so.1 and the kernel driver have different versions: reboot after a driver update, or give "
             "the container the host's libraries";
    case cudaErrorCompatNotSupportedOnDevice:
      return "the libcuda.so.1 of the compatibility package does not support this GPU: remove its folder (cuda/compat) "
             "from LD_LIBRARY_PATH";
    case cudaErrorInvalidDevice: return "CUDA_VISIBLE_DEVICES names a GPU twice, or one that does not exist";
    case cudaErrorDevicesUnavailable:
      return "the GPU is busy: another process has exclusive use of it (nvidia-smi -q -d COMPUTE shows whether its "
             "mode is exclusive or prohibited)";
    case cudaErrorUnsupportedPtxVersion:
      return "this build has no code for this GPU, and the driver is too old to compile the PTX that it "
             "contains: install a newer driver, or build with this GPU in ASSAY_CUDA_ARCHITECTURES";
    case cudaErrorMemoryAllocation: return "no device memory is left for a context: other processes use it";
    case cudaErrorUnknown:
    case cudaErrorOperatingSystem:
      return "the driver cannot open its devices: check that /dev/nvidiactl, /dev/nvidia-uvm and /dev/nvidia0, 1, ... "
             "exist and can be opened";
    default: return {};
  }
}

// As ASSAY_CUDA, for the first calls of a process.
void check_first_call(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  const std::string trouble = driver_trouble(error);
  if (trouble.empty()) fail(error, call, __FILE__, __LINE__);
  cudaGetLastError();
  throw Error(fmt::format("{} ({}: {}; {})", trouble, call, cudaGetErrorName(error), visible_devices()));
}

}  // namespace

int device_count() {
  constexpr int oldest_toolkit = 12080;  // that can build Assay
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) cudaGetLastError();
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (error == cudaErrorInsufficientDriver && driver == 0)
    throw Error(
        "no NVIDIA driver is loaded (libcuda.so.1 is missing or does not answer): install it, or use --device cpu");
  if (error == cudaErrorInsufficientDriver)
    throw Error(
        fmt::format("the NVIDIA driver is too old: it supports CUDA {}, this build uses {}; install a newer driver{}",
                    version_text(driver), version_text(runtime),
                    driver >= oldest_toolkit ? ", or build with a toolkit of its version" : ""));
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
    throw Error(fmt::format(
        "no GPU is visible ({}){}", visible_devices(),
        std::getenv("CUDA_VISIBLE_DEVICES") ? "" : "; does nvidia-smi show one, and is it passed to the container?"));
  check_first_call(error, "cudaGetDeviceCount");
  return count;
}

namespace {

int choose_gpu(int local_rank) {
  const int count = device_count();
  if (local_rank < count) return local_rank;
  if (std::getenv("ASSAY_SHARE_GPU")) return local_rank % count;
  throw Error(fmt::format("local rank {} has no GPU: {} visible ({}); --share-gpu lets ranks share them", local_rank,
                          count, visible_devices()));
}

// MIG slices have their own UUIDs; only the name distinguishes them from a whole GPU ("... MIG 1g.10gb").
std::string uuid_text(const cudaUUID_t& uuid, std::string_view name) {
  std::string text = name.find(" MIG ") == name.npos ? "GPU-" : "MIG-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

// "580.159.03": the first word of the driver's version line that looks like a version.
std::string driver_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; !emulated() && file >> word;) {
    const bool version =
        word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos;
    if (version) return word;
  }
  return {};
}

int attribute_of(int gpu, cudaDeviceAttr attribute) {
  int value = 0;
  ASSAY_CUDA(cudaDeviceGetAttribute(&value, attribute, gpu));
  return value;
}

std::string pci_of(int gpu) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", attribute_of(gpu, cudaDevAttrPciDomainId),
                     attribute_of(gpu, cudaDevAttrPciBusId), attribute_of(gpu, cudaDevAttrPciDeviceId));
}

DeviceInfo describe(int gpu) {
  cudaDeviceProp properties{};
  ASSAY_CUDA(cudaGetDeviceProperties(&properties, gpu));
  int driver = 0, runtime = 0;
  ASSAY_CUDA(cudaDriverGetVersion(&driver));
  ASSAY_CUDA(cudaRuntimeGetVersion(&runtime));
  DeviceInfo info;
  info.kind = DeviceKind::cuda;
  info.name = properties.name;
  info.uuid = uuid_text(properties.uuid, info.name);
  info.pci = pci_of(gpu);
  info.numa_node = numa_node_of(gpu);
  info.memory_bytes = memory_state().free;
  info.last_level_cache_bytes = static_cast<std::uint64_t>(properties.l2CacheSize);
  info.compute_units = properties.multiProcessorCount;
  info.compute_capability = 10 * properties.major + properties.minor;
  const std::string release = driver_release();
  info.software = fmt::format("CUDA {}, driver {}", version_text(runtime),
                              release.empty() ? "for CUDA " + version_text(driver) : release);
  info.emulated = emulated();
  return info;
}

void refuse_unknown_architecture(const DeviceInfo& info) {
  const cudaError_t error = has_code_for_current_device();
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction)
    throw Error(fmt::format("{} has compute capability {}.{}, for which this build has no code (it was built for {})",
                            info.name, info.compute_capability / 10, info.compute_capability % 10,
                            ASSAY_CUDA_ARCHITECTURES));
  check_first_call(error, "cudaFuncGetAttributes");
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int local_rank) {
    const int gpu = choose_gpu(local_rank);
    own_gpu = gpu;
    check_first_call(cudaSetDevice(gpu), "cudaSetDevice");
    check_first_call(cudaFree(nullptr), "cudaFree");  // creates the context if cudaSetDevice has not
    info_ = describe(gpu);
    refuse_unknown_architecture(info_);
    gate_.emplace();
    CudaStream stream;
    gate_->load(cuda::native(stream));
    stream.synchronize();
    timer_cost_ = measure_timer_cost();
  }

  const DeviceInfo& info() const override { return info_; }
  std::unique_ptr<Stream> make_stream() override {
    use_own_gpu();
    return std::make_unique<CudaStream>();
  }
  std::unique_ptr<Event> make_event() override {
    use_own_gpu();
    return std::make_unique<CudaEvent>();
  }

  Buffer allocate(std::size_t bytes, Memory memory) override {
    if (bytes == 0) return {};
    use_own_gpu();
    switch (memory) {
      case Memory::device: return allocate_device(bytes);
      case Memory::pinned: return allocate_pinned(bytes, info_.numa_node);
      case Memory::host: break;
    }
    return host_->allocate(bytes, memory);
  }
  std::optional<std::uint64_t> free_bytes() override { return memory_state().free; }
  void copy(void* to, const void* from, std::size_t bytes, Stream& stream) override {
    if (bytes > 0) ASSAY_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda::native(stream)));
  }
  void zero(void* at, std::size_t bytes, Stream& stream) override {
    if (bytes > 0) ASSAY_CUDA(cudaMemsetAsync(at, 0, bytes, cuda::native(stream)));
  }

  std::unique_ptr<Graph> capture(Stream& stream, const std::function<void()>& body, std::string& why_not) override {
    ASSAY_CUDA(cudaStreamBeginCapture(cuda::native(stream), cudaStreamCaptureModeThreadLocal));
    std::string broke;
    try {
      body();
    } catch (const std::exception& error) {
      broke = error.what();
    }
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(cuda::native(stream), &graph);
    cudaGetLastError();
    const std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> owner(graph, &cudaGraphDestroy);
    if (broke.empty() && (ended != cudaSuccess || !graph)) broke = cudaGetErrorString(ended);
    if (!broke.empty()) {
      why_not = broke;
      return nullptr;
    }
    try {
      return std::make_unique<CudaGraph>(graph);
    } catch (const Error& error) {
      why_not = error.what();
      return nullptr;
    }
  }

  bool lost() override {
    use_own_gpu();
    cudaGetLastError();
    const bool broken = cudaDeviceSynchronize() != cudaSuccess;
    cudaGetLastError();
    return broken;
  }

  std::string_view timer() const override { return "cuda_event"; }
  double timer_cost() const override { return timer_cost_; }
  double shortest_sample() const override { return 5e-3; }

  void evict(Stream& stream, std::span<const MemoryRange>) override {
    const std::size_t bytes = 2 * info_.last_level_cache_bytes;
    if (!flush_.data()) flush_ = allocate_device(bytes);
    ASSAY_CUDA(cudaMemsetAsync(flush_.data(), 0, bytes, cuda::native(stream)));
  }

  void close_gate(Stream& stream) override { gate_->close(cuda::native(stream)); }
  void open_gate() override { gate_->open(); }
  bool gate_timed_out() override { return gate_->timed_out(); }

 private:
  // Seconds between two consecutive events with nothing between them.
  double measure_timer_cost() {
    CudaStream stream;
    CudaEvent start, stop;
    double least = 1.0;
    for (int i = 0; i < 20; ++i) {
      start.record(stream);
      stop.record(stream);
      stop.synchronize();
      least = std::min(least, stop.seconds_since(start));
    }
    return least;
  }

  DeviceInfo info_;
  const std::unique_ptr<Device> host_ = cpu::make_cpu_device();
  double timer_cost_ = 0;
  Buffer flush_;
  std::optional<HostGate> gate_;
};

}  // namespace

std::optional<int> numa_node_of(int gpu) {
  if (const auto node = cpu::node_of_pci(pci_of(gpu))) return node;
  int node = -1;  // also if there is one node only
  if (cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, gpu) != cudaSuccess) cudaGetLastError();  // an old driver
  return node >= 0 ? std::optional(node) : std::nullopt;
}

void use_own_gpu() {
  thread_local bool done = false;
  const int gpu = own_gpu;
  if (done || gpu < 0) return;
  ASSAY_CUDA(cudaSetDevice(gpu));
  done = true;
}

std::unique_ptr<Device> make_cuda_device(int local_rank) { return std::make_unique<CudaDevice>(local_rank); }

std::unique_ptr<Stream> make_urgent_stream() {
  use_own_gpu();
  int least = 0, greatest = 0;  // the greatest priority is the lowest number
  ASSAY_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  return std::make_unique<CudaStream>(greatest);
}

}  // namespace assay::cuda

extern "C" int assay_count_gpus() { return assay::cuda::device_count(); }

extern "C" assay::Device* assay_make_cuda_device(int local_rank) {
  return assay::cuda::make_cuda_device(local_rank).release();
}

extern "C" assay::Stream* assay_cuda_urgent_stream() { return assay::cuda::make_urgent_stream().release(); }

extern "C" void assay_cuda_delay(assay::Stream& stream, double seconds) {
  assay::cuda::enqueue_delay(seconds, assay::cuda::native(stream));
}
