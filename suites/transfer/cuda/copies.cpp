// The transfer suite on CUDA's runtime: the kernels of copies.cu, and copies between two GPUs.
#include "suites/transfer/cuda/copies.h"

#include "harness/core/clock.h"
#include "harness/device/cpu/near_node.h"
#include "harness/device/cuda/check.h"
#include "harness/device/cuda/cuda_device.h"
#include "harness/device/cuda/host_gate.h"
#include "harness/device/cuda/native.h"
#include "suites/transfer/device_copies.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace assay::transfer {

namespace {

// Makes a GPU the thread's current one for its lifetime.
class OnGpu {
 public:
  explicit OnGpu(int gpu) : gpu_(gpu) {
    ASSAY_CUDA(cudaGetDevice(&before_));
    if (gpu_ != before_) ASSAY_CUDA(cudaSetDevice(gpu_));
  }
  ~OnGpu() {
    if (gpu_ != before_) cudaSetDevice(before_);
  }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int gpu_;
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

// The number of blocks of 512 threads for a copy on the current GPU. A single copy fills the GPU. Several share room
// for two blocks per SM, with 32 KiB in flight in each, more than a bus needs: all are resident from the start, and
// none waits for another to end.
unsigned blocks_of_copy(int at_once) {
  int gpu = 0, units = 0;
  ASSAY_CUDA(cudaGetDevice(&gpu));
  ASSAY_CUDA(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, gpu));
  return static_cast<unsigned>(at_once > 1 ? std::max(1, 2 * units / at_once) : 4 * units);
}

double seconds_between(cudaEvent_t start, cudaEvent_t stop) {
  float milliseconds = 0;
  ASSAY_CUDA(cudaEventElapsedTime(&milliseconds, start, stop));
  return 1e-3 * static_cast<double>(milliseconds);
}

Buffer filled_on(int gpu, std::size_t bytes) {
  Buffer buffer = memory_on(gpu, bytes);
  const OnGpu here(gpu);
  enqueue_fill(buffer.data(), bytes, nullptr);
  ASSAY_CUDA(cudaStreamSynchronize(nullptr));
  return buffer;
}

// One way of an order, with the stream of the GPU that copies: a kernel there reads or writes; which GPU's copy engine
// is used is up to the driver.
class Lane {
 public:
  // The engine must be the current GPU. `at_once`: the copies it makes at the same time.
  Lane(const PairOrder& order, const PairWay& way, const Buffer& source, int at_once)
      : order_(order),
        way_(way),
        source_(source),
        target_(memory_on(way.to, order.bytes)),
        max_blocks_(blocks_of_copy(at_once)) {
    const OnGpu receiver(way.to);
    ASSAY_CUDA(cudaMemsetAsync(target_.data(), 0, order.bytes, nullptr));
    ASSAY_CUDA(cudaStreamSynchronize(nullptr));
  }

  static int engine(const PairOrder& order, const PairWay& way) { return order.write ? way.from : way.to; }
  cudaStream_t stream() const { return owner_.stream; }
  cudaEvent_t start() const { return start_.event; }
  cudaEvent_t stop() const { return stop_.event; }
  double seconds() const { return seconds_between(start(), stop()); }

  void copy(int copies) const {
    const OnGpu here(engine(order_, way_));
    for (int i = 0; i < copies; ++i) {
      if (order_.by_kernel)
        enqueue_copy(target_.data(), source_.data(), order_.bytes, max_blocks_, stream());
      else
        ASSAY_CUDA(cudaMemcpyPeerAsync(target_.data(), way_.to, source_.data(), way_.from, order_.bytes, stream()));
    }
  }
  // Between the lane's two events.
  void enqueue(int copies) const {
    ASSAY_CUDA(cudaEventRecord(start(), stream()));
    copy(copies);
    ASSAY_CUDA(cudaEventRecord(stop(), stream()));
  }

  void flip_a_bit() const {
    const OnGpu here(way_.to);
    std::uint8_t* at = target_.as<std::uint8_t>() + order_.bytes / 2;
    std::uint8_t value = 0;
    ASSAY_CUDA(cudaMemcpy(&value, at, 1, cudaMemcpyDefault));
    value ^= 4;
    ASSAY_CUDA(cudaMemcpy(at, &value, 1, cudaMemcpyDefault));
  }

  Wrong check() const {
    const OnGpu here(way_.to);
    const Buffer found = memory_on(way_.to, sizeof(Wrong));
    ASSAY_CUDA(cudaMemsetAsync(found.data(), 0, sizeof(Wrong), nullptr));
    enqueue_compare(target_.data(), order_.bytes, found.as<Wrong>(), nullptr);
    Wrong wrong;
    ASSAY_CUDA(cudaMemcpy(&wrong, found.data(), sizeof wrong, cudaMemcpyDefault));
    return wrong;
  }

 private:
  const PairOrder& order_;
  const PairWay way_;
  const Buffer& source_;
  const Buffer target_;
  const unsigned max_blocks_;
  const StreamOwner owner_;
  const EventOwner start_, stop_;
};

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
  bool can_access(int gpu, int other) const override {
    int can = 0;
    ASSAY_CUDA(cudaDeviceCanAccessPeer(&can, gpu, other));
    return can != 0;
  }

  // The first lane's GPU starts the others' streams and waits for them, so that its clock times them all.
  PairResult measure(const PairOrder& order) override {
    std::map<int, Buffer> sources;
    std::map<int, int> at_once;
    // In both directions if there are two, as in CUDA's samples: which GPU's engine copies is up to the driver.
    std::set<PairWay> accesses;
    for (const PairWay& way : order.ways) {
      if (!sources.contains(way.from)) sources[way.from] = filled_on(way.from, order.bytes);
      ++at_once[Lane::engine(order, way)];
      accesses.insert({{way.from, way.to}, {way.to, way.from}});
    }
    std::deque<PeerAccess> access;
    for (const auto& [gpu, other] : accesses) access.emplace_back(gpu, other, order.access && can_access(gpu, other));
    std::deque<Lane> lanes;
    for (const PairWay& way : order.ways) {
      const int engine = Lane::engine(order, way);
      const OnGpu here(engine);
      lanes.emplace_back(order, way, sources[way.from], at_once[engine]);
    }

    const Lane& first = lanes.front();
    const int engine = Lane::engine(order, order.ways.front());
    const OnGpu here(engine);
    const cpu::RunsOnNode near(cuda::numa_node_of(engine));
    const EventOwner all_done;
    cuda::HostGate gate;  // copies may take less time than their launches
    gate.load(first.stream());
    // Seconds; nothing if the gate has opened by itself.
    const auto run = [&](int copies, bool gated) -> std::optional<double> {
      if (gated) gate.close(first.stream());
      first.enqueue(copies);
      for (auto lane = std::next(lanes.begin()); lane != lanes.end(); ++lane) {
        ASSAY_CUDA(cudaStreamWaitEvent(lane->stream(), first.start(), 0));
        lane->enqueue(copies);
        ASSAY_CUDA(cudaStreamWaitEvent(first.stream(), lane->stop(), 0));
      }
      if (lanes.size() > 1) ASSAY_CUDA(cudaEventRecord(all_done.event, first.stream()));
      gate.open();
      const cudaEvent_t end = lanes.size() > 1 ? all_done.event : first.stop();
      ASSAY_CUDA(cudaEventSynchronize(end));
      return gated && gate.timed_out() ? std::nullopt : std::optional(seconds_between(first.start(), end));
    };
    PairResult result = sampled(order, lanes, run);
    if (order.bytes <= small_bytes)
      result.waited = waits([&] {
        for (const Lane& lane : lanes) lane.copy(1);
        for (const Lane& lane : lanes) ASSAY_CUDA(cudaStreamSynchronize(lane.stream()));
      });
    result.host_cpus = cpu::cpus_of_this_thread();
    if (order.flip_a_bit) first.flip_a_bit();
    for (const Lane& lane : lanes) result.wrong.push_back(lane.check());
    return result;
  }

 private:
  template <typename Run>
  static PairResult sampled(const PairOrder& order, const std::deque<Lane>& lanes, const Run& run) {
    run(1, false);  // loads and maps
    // The driver makes copies through the host, and may wait for their parts. The queue must not fill up behind a gate.
    int max_gated = order.access ? 256 : 0;
    PairResult result;
    while (const int timed_out = sample(order, lanes, run, max_gated, result)) {
      max_gated = timed_out / 2;
      result = {};
      result.max_gated = max_gated;
    }
    return result;
  }

  // With at most `max_gated` copies per sample behind a gate, or, if 0, without one. Returns 0, or behind how many
  // copies the gate opened by itself; no sample counts then.
  template <typename Run>
  static int sample(const PairOrder& order, const std::deque<Lane>& lanes, const Run& run, int max_gated,
                    PairResult& result) {
    // 1,000 x the resolution of events; several streams start microseconds apart.
    const double min_seconds = lanes.size() > 1 ? 5e-3 : 500e-6;
    const bool gated = max_gated > 0;
    const int max_copies = gated ? max_gated : 4096;
    int copies = 1;
    std::optional<double> seconds = run(copies, gated);
    for (; seconds && *seconds < min_seconds && 2 * copies <= max_copies; seconds = run(copies, gated)) copies *= 2;
    result.by_way.resize(lanes.size());
    const Clock::time_point began = Clock::now();
    do {
      if (seconds) seconds = run(copies, gated);
      if (!seconds) return copies;
      result.seconds.push_back(*seconds / copies);
      for (std::size_t i = 0; i < lanes.size(); ++i) result.by_way[i].push_back(lanes[i].seconds() / copies);
    } while (static_cast<int>(result.seconds.size()) < order.samples && seconds_since(began) < order.seconds);
    return 0;
  }
};

}  // namespace

}  // namespace assay::transfer

extern "C" assay::transfer::DeviceCopies* assay_cuda_transfer_copies() { return new assay::transfer::CudaCopies; }
