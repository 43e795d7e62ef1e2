// The transfer suite on CUDA's runtime: the kernels of copies.cu, and copies between two GPUs.
#include "suites/transfer/cuda/copies.h"

#include "harness/core/error.h"
#include "harness/device/cpu/near_node.h"
#include "harness/device/cuda/check.h"
#include "harness/device/cuda/cuda_device.h"
#include "harness/device/cuda/host_gate.h"
#include "harness/device/cuda/native.h"
#include "suites/transfer/device_copies.h"

#include <algorithm>
#include <chrono>

namespace assay::transfer {

namespace {

// Makes a GPU the thread's current one for its lifetime.
class OnGpu {
 public:
  explicit OnGpu(int gpu) {
    ASSAY_CUDA(cudaGetDevice(&before_));
    ASSAY_CUDA(cudaSetDevice(gpu));
  }
  ~OnGpu() { cudaSetDevice(before_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_ = 0;
};

// Lets one GPU read another's memory, or prevents it, for its lifetime; then restores the previous state.
class PeerAccess {
 public:
  PeerAccess(int gpu, int peer, bool wanted) : gpu_(gpu), peer_(peer) {
    const OnGpu here(gpu_);
    const cudaError_t error = wanted ? cudaDeviceEnablePeerAccess(peer, 0) : cudaDeviceDisablePeerAccess(peer);
    if (error != cudaSuccess) cudaGetLastError();
    if (error == cudaErrorPeerAccessAlreadyEnabled || error == cudaErrorPeerAccessNotEnabled) return;
    ASSAY_CUDA(error);
    undo_ = wanted ? Undo::disable : Undo::enable;
  }
  ~PeerAccess() {
    if (undo_ == Undo::nothing) return;
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(gpu_);
    if (undo_ == Undo::disable) cudaDeviceDisablePeerAccess(peer_);
    if (undo_ == Undo::enable) cudaDeviceEnablePeerAccess(peer_, 0);
    cudaSetDevice(before);
  }
  PeerAccess(const PeerAccess&) = delete;
  PeerAccess& operator=(const PeerAccess&) = delete;

 private:
  enum class Undo { nothing, disable, enable };
  int gpu_, peer_;
  Undo undo_ = Undo::nothing;
};

Buffer memory_on(int gpu, std::size_t bytes) {
  const OnGpu here(gpu);
  void* data = nullptr;
  ASSAY_CUDA(cudaMalloc(&data, bytes));
  return Buffer(data, bytes, [](void* at, std::size_t) { cudaFree(at); });
}

struct StreamOwner {
  StreamOwner() { ASSAY_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~StreamOwner() { cudaStreamDestroy(stream); }
  StreamOwner(const StreamOwner&) = delete;
  StreamOwner& operator=(const StreamOwner&) = delete;
  cudaStream_t stream = nullptr;
};
struct EventOwner {
  EventOwner() { ASSAY_CUDA(cudaEventCreate(&event)); }
  ~EventOwner() { cudaEventDestroy(event); }
  EventOwner(const EventOwner&) = delete;
  EventOwner& operator=(const EventOwner&) = delete;
  cudaEvent_t event = nullptr;
};

// The number of blocks of 512 threads for a copy on the current GPU. A single copy fills the GPU. Several have one
// block per SM each, 32 KiB in flight, more than a bus needs: all are resident from the start, and none waits for
// another to end.
unsigned blocks_of_copy(int at_once) {
  int gpu = 0, units = 0;
  ASSAY_CUDA(cudaGetDevice(&gpu));
  ASSAY_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, gpu));
  return static_cast<unsigned>(at_once > 1 ? units : 4 * units);
}

class CudaCopies final : public DeviceCopies {
 public:
  void copy(void* to, const void* from, std::size_t bytes, int at_once, Stream& stream) override {
    enqueue_copy(to, from, bytes, blocks_of_copy(at_once), cuda::native(stream));
  }
  void fill(void* data, std::size_t bytes, Stream& stream) override { enqueue_fill(data, bytes, cuda::native(stream)); }
  void compare(const void* data, std::size_t bytes, Wrong* wrong, Stream& stream) override {
    enqueue_compare(data, bytes, wrong, cuda::native(stream));
  }

  int gpus() const override {
    int count = 0;
    ASSAY_CUDA(cudaGetDeviceCount(&count));
    return count;
  }
  bool can_access(int from, int to) const override {
    int can = 0;
    ASSAY_CUDA(cudaDeviceCanAccessPeer(&can, from, to));
    return can != 0;
  }

  // The receiving GPU's stream does the work: a kernel there reads; which copy engine is used is up to the driver.
  PairResult measure(const PairOrder& order) override {
    const Buffer source = memory_on(order.from, order.bytes), target = memory_on(order.to, order.bytes);
    {
      const OnGpu sender(order.from);
      enqueue_fill(source.data(), order.bytes, nullptr);
      ASSAY_CUDA(cudaStreamSynchronize(nullptr));
    }
    const OnGpu receiver(order.to);
    const cpu::RunsOnNode near(cuda::numa_node_of(order.to));
    // In both directions if there are two, as in such samples: which GPU's engine copies is up to the driver.
    const PeerAccess there(order.to, order.from, order.access),
        back(order.from, order.to, order.access && can_access(order.from, order.to));
    const StreamOwner owner;
    const EventOwner start, stop;
    cuda::HostGate gate;  // copies may take less time than their launches
    gate.load(owner.stream);
    ASSAY_CUDA(cudaMemsetAsync(target.data(), 0, order.bytes, owner.stream));
    const unsigned max_blocks = blocks_of_copy(1);
    bool gated = false;
    const auto enqueue = [&](int copies) {
      for (int i = 0; i < copies; ++i) {
        if (order.by_kernel)
          enqueue_copy(target.data(), source.data(), order.bytes, max_blocks, owner.stream);
        else
          ASSAY_CUDA(
              cudaMemcpyPeerAsync(target.data(), order.to, source.data(), order.from, order.bytes, owner.stream));
      }
    };
    const auto time = [&](int copies) {
      if (gated) gate.close(owner.stream);
      ASSAY_CUDA(cudaEventRecord(start.event, owner.stream));
      enqueue(copies);
      ASSAY_CUDA(cudaEventRecord(stop.event, owner.stream));
      gate.open();
      // The first call loads and maps. The driver makes copies through the host, and may wait for their parts.
      gated = order.access;
      ASSAY_CUDA(cudaEventSynchronize(stop.event));
      float milliseconds = 0;
      ASSAY_CUDA(cudaEventElapsedTime(&milliseconds, start.event, stop.event));
      return 1e-3 * static_cast<double>(milliseconds);
    };
    const auto wait_for_one = [&] {
      enqueue(1);
      ASSAY_CUDA(cudaStreamSynchronize(owner.stream));
    };
    PairResult result;
    result.seconds = sampled(order, time);
    if (order.bytes <= small_bytes) result.waited = waits(wait_for_one);
    result.host_cpus = cpu::cpus_of_this_thread();
    result.wrong = checked(order, target, owner.stream);
    return result;
  }

 private:
  template <typename Time>
  static std::vector<double> sampled(const PairOrder& order, const Time& time) {
    constexpr double min_seconds = 500e-6;             // per sample: 1,000 x the resolution of events
    const int max_copies = order.access ? 256 : 4096;  // the queue must not fill up behind a closed gate
    time(1);
    int copies = 1;
    for (double seconds = time(1); seconds < min_seconds && copies < max_copies; seconds = time(copies)) copies *= 2;
    std::vector<double> samples;
    const auto began = std::chrono::steady_clock::now();
    do {
      samples.push_back(time(copies) / copies);
    } while (static_cast<int>(samples.size()) < order.samples &&
             std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() < order.seconds);
    return samples;
  }

  static Wrong checked(const PairOrder& order, const Buffer& target, cudaStream_t stream) {
    if (order.flip_a_bit) {
      std::uint8_t* at = target.as<std::uint8_t>() + order.bytes / 2;
      std::uint8_t value = 0;
      ASSAY_CUDA(cudaMemcpyAsync(&value, at, 1, cudaMemcpyDefault, stream));
      ASSAY_CUDA(cudaStreamSynchronize(stream));
      value ^= 4;
      ASSAY_CUDA(cudaMemcpyAsync(at, &value, 1, cudaMemcpyDefault, stream));
      ASSAY_CUDA(cudaStreamSynchronize(stream));
    }
    const Buffer found = memory_on(order.to, sizeof(Wrong));
    ASSAY_CUDA(cudaMemsetAsync(found.data(), 0, sizeof(Wrong), stream));
    enqueue_compare(target.data(), order.bytes, found.as<Wrong>(), stream);
    Wrong wrong;
    ASSAY_CUDA(cudaMemcpyAsync(&wrong, found.data(), sizeof wrong, cudaMemcpyDefault, stream));
    ASSAY_CUDA(cudaStreamSynchronize(stream));
    return wrong;
  }
};

}  // namespace

}  // namespace assay::transfer

extern "C" assay::transfer::DeviceCopies* assay_cuda_transfer_copies() { return new assay::transfer::CudaCopies; }
