// The loader: worker threads fill batches in order, up to a fixed number ahead of the consumer.
#pragma once

#include "harness/device/device.h"
#include "workloads/data/aligned_bytes.h"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace assay::data {

// The destination of one sample.
struct SampleSlot {
  std::byte* data;  // sample_bytes long, aligned as the sample's size allows
  std::int32_t* label;
  std::int64_t* index;  // index of the element in its set
  std::int64_t* bytes;  // compressed bytes read or decoded for it
};

// The work of one worker. Each worker has its own maker, used only on its thread.
class SampleMaker {
 public:
  virtual ~SampleMaker() = default;
  // Makes the sample at `position` of the endless stream, which must not depend on the worker.
  virtual void make(std::int64_t position, const SampleSlot& slot) = 0;
};

struct LoaderOptions {
  int workers = 1;
  std::vector<int> cpus;          // worker w runs on cpus[w % size]; empty: anywhere
  std::int64_t batch = 32;        // samples
  int prefetch = 4;               // batches in memory, including the consumer's; at least 2
  std::int64_t sample_bytes = 0;  // bytes of a sample's output; 0 if samples have no output
  std::int64_t grain = 1;         // samples that a worker makes at a time; divides the batch
  // Allocates memory for batches (pinned, for a GPU); null: ordinary memory.
  std::function<Buffer(std::size_t bytes)> allocate = {};
};

struct Batch {
  std::int64_t number = 0;
  const std::byte* data = nullptr;  // (batch, sample_bytes)
  std::span<const std::int32_t> labels;
  std::span<const std::int64_t> indices;
  std::int64_t bytes = 0;  // compressed bytes of all its samples
};

// Only one thread may call next(). Batches come in order, with the same samples for any number of workers. The
// destructor waits only for the samples that workers are making.
class Loader {
 public:
  using MakeWorker = std::function<std::unique_ptr<SampleMaker>(int worker)>;

  // `make_worker` is called on each worker's thread, so that its memory is first touched there.
  Loader(const LoaderOptions& options, MakeWorker make_worker);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, valid until the next call. Rethrows a worker's exception, then and in every later call.
  const Batch& next();

 private:
  struct Slot {
    AlignedBytes ordinary;
    Buffer allocated;           // instead of `ordinary`, if LoaderOptions::allocate is set
    std::byte* data = nullptr;  // in `allocated` or `ordinary`
    std::vector<std::int32_t> labels;
    std::vector<std::int64_t> indices;
    std::vector<std::int64_t> bytes;
    std::int64_t remaining = 0;  // samples still to come
  };

  void run(int worker);
  void work(int worker);

  LoaderOptions options_;
  MakeWorker make_worker_;
  std::vector<Slot> slots_;
  Batch current_;
  std::mutex mutex_;
  std::condition_variable slot_free_;    // for workers: a slot became free, or stop
  std::condition_variable batch_ready_;  // for the consumer: a batch is complete, or a worker failed
  std::int64_t next_position_ = 0;
  std::int64_t released_ = 0;  // batches that the consumer is done with
  std::int64_t delivered_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace assay::data
