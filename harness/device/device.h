// The interface of devices that cases run on, with streams, events and buffers. Backends: cpu/ and the cuda module.
#pragma once

#include "harness/core/dtype.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay {

enum class DeviceKind { cpu, cuda };
std::string_view name_of(DeviceKind kind);
std::optional<DeviceKind> device_kind_from(std::string_view name);

class Event;

// An ordered queue of work. CPU streams run inline: the work is done when the call returns.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void synchronize() = 0;
  // Work enqueued from here on starts once `event` is reached; the host does not wait. Inline streams have reached it.
  virtual void wait(Event& event) { (void)event; }
  // The backend's own handle (cudaStream_t), or null on a CPU.
  virtual void* native() { return nullptr; }
};

// A stream whose work is complete when the call returns, as on a CPU.
class InlineStream final : public Stream {
 public:
  void synchronize() override {}
};

// A point in time on a stream.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(Stream& stream) = 0;
  // As record(), but only for timing: captured in a graph, it records at every launch, and no stream can wait for it.
  virtual void stamp(Stream& stream) { record(stream); }
  virtual void synchronize() = 0;
  // Seconds from `start` to this event; both must have been recorded and reached.
  virtual double seconds_since(const Event& start) const = 0;
};

// Work captured once and launched as a whole, any number of times (a CUDA graph).
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch(Stream& stream) = 0;
};

enum class Memory { device, host, pinned };

// Owned memory, aligned to at least 64 bytes (from 2 MiB on to 2 MiB, for huge pages). Move-only.
class Buffer {
 public:
  using Release = std::function<void(void*, std::size_t)>;

  Buffer() = default;
  Buffer(void* data, std::size_t bytes, Release release) : data_(data), bytes_(bytes), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Buffer() {
    if (data_) release_(data_, bytes_);
  }

  std::size_t bytes() const { return bytes_; }
  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    release_.swap(other.release_);
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Release release_;
};

// A part of a device's memory, or of the host's.
using MemoryRange = std::span<const std::byte>;
inline MemoryRange memory_range(const void* start, std::size_t bytes) {
  return {static_cast<const std::byte*>(start), bytes};
}

struct DeviceInfo {
  DeviceKind kind = DeviceKind::cpu;
  std::string name;                          // "Intel Emerald Rapids", "NVIDIA H200"
  std::string uuid;                          // empty on a CPU
  std::string pci;                           // empty on a CPU
  std::optional<int> numa_node = {};         // the host's node next to a GPU; absent: unknown, or a CPU
  std::uint64_t memory_bytes = 0;            // memory that this process may use
  std::uint64_t last_level_cache_bytes = 0;  // cache that this process can use
  int compute_units = 0;                     // CPUs of this rank, or SMs
  int compute_capability = 0;                // 90 for sm_90; 0 on a CPU
  std::string software;                      // "CUDA 13.0, driver 580.159.03"; empty on a CPU
  bool emulated = false;                     // an emulated GPU of tests, whose timings mean nothing
};

// Where a GPU keeps data of this size that all its multiprocessors use again and again: "L2" or "L2, in part memory";
// empty if it is larger than L2. From A100 on L2 consists of two partitions, each of which caches for the
// multiprocessors next to it (NVIDIA A100 Tensor Core GPU Architecture, 2020), so such data is in both and has half.
std::string_view l2_level(const DeviceInfo& gpu, double bytes);

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  DeviceKind kind() const { return info().kind; }

  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  // Throws Error with the bytes requested and the bytes free if there is not enough.
  virtual Buffer allocate(std::size_t bytes, Memory memory = Memory::device) = 0;
  // Free bytes of the device's own memory; nothing if it uses the host's.
  virtual std::optional<std::uint64_t> free_bytes() { return std::nullopt; }
  // Between any two kinds of memory, in stream order.
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream& stream) = 0;
  virtual void zero(void* at, std::size_t bytes, Stream& stream) = 0;

  // Captures what `body` enqueues on `stream`, and on streams that fork from it and join it again, as a graph; none of
  // it runs. Null, with the reason, if this device has no graphs or `body` does something that cannot be captured
  // (synchronises, allocates); the caller must then run `body` itself.
  virtual std::unique_ptr<Graph> capture(Stream& stream, const std::function<void()>& body, std::string& why_not) {
    (void)stream, (void)body;
    why_not = "work on this device runs as it is enqueued";
    return nullptr;
  }

  // Whether an error, such as a fault in a kernel, has made the device unusable for this process; only another process
  // can use it then. Waits for enqueued work.
  virtual bool lost() { return false; }

  // The name of the timer that events use ("steady_clock", "cuda_event"), and the cost in seconds of reading it twice.
  virtual std::string_view timer() const = 0;
  virtual double timer_cost() const = 0;
  // The shortest valid sample: on a CPU 1,000 x the timer's cost and at least 100 us; on a GPU 5 ms, of which the first
  // call's launch of about 10 us is 0.2 %.
  virtual double shortest_sample() const = 0;
  // Makes later work on `stream` find these ranges in no cache. A CPU writes back and drops each of their lines, in all
  // caches; a GPU, which cannot do so by line, empties its L2.
  virtual void evict(Stream& stream, std::span<const MemoryRange> ranges) = 0;
  // Holds back work enqueued on `stream` after close_gate() until open_gate(), so that launch overhead is not timed. At
  // most a few hundred launches may be enqueued in between, none of which synchronises: the gate would open by itself
  // after 5 s. No effect on a CPU.
  virtual void close_gate(Stream& stream) { (void)stream; }
  virtual void open_gate() {}
  // Whether the gate last closed has opened by itself, or could not be closed; known once the work behind it is done.
  virtual bool gate_timed_out() { return false; }
};

// The device of this process: the rank's CPU set, or its GPU (through libassay-cuda.so).
// Throws Error with the reason if it is not available.
std::unique_ptr<Device> make_device(DeviceKind kind, int local_rank);

// The result of looking for GPUs with the CUDA module. A child process looks, so that this process never loads CUDA and
// may fork.
struct CudaProbe {
  int gpus = 0;         // GPUs that a process here sees
  std::string problem;  // why none can be used; empty when one can
};
CudaProbe probe_cuda();

}  // namespace assay
