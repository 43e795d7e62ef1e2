// The loader: worker threads fill batches in order, a bounded number ahead of the consumer.
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

// Where one sample goes.
struct SampleSlot {
  std::byte* data;  // sample_bytes long, aligned as the sample's size allows
  std::int32_t* label;
  std::int64_t* index;  // which element of the set it is
  std::int64_t* bytes;  // read or decoded for it, compressed
};

// What a worker does; each worker has its own, used by its thread alone.
class SampleMaker {
 public:
  virtual ~SampleMaker() = default;
  // Makes the sample at `position` of the endless stream: a function of the position alone, whichever worker is asked.
  virtual void make(std::int64_t position, const SampleSlot& slot) = 0;
};

struct LoaderOptions {
  int workers = 1;
  std::vector<int> cpus;          // worker w runs on cpus[w % size]; empty: anywhere
  std::int64_t batch = 32;        // samples
  int prefetch = 4;               // batches that exist at once, the consumer's included; at least 2
  std::int64_t sample_bytes = 0;  // of output; 0 when samples leave nothing behind
  std::int64_t grain = 1;         // samples that a worker takes at a time; divides the batch
  // Where batches lie (pinned memory of a GPU); null: ordinary memory.
  std::function<Buffer(std::size_t bytes)> allocate = {};
};

struct Batch {
  std::int64_t number = 0;
  const std::byte* data = nullptr;  // (batch, sample_bytes)
  std::span<const std::int32_t> labels;
  std::span<const std::int64_t> indices;
  std::int64_t bytes = 0;  // compressed, of all its samples
};

// next() is for one thread. Batches come in order, with the same samples for any number of workers. The destructor
// waits for the workers to finish the samples in hand, however much is left.
class Loader {
 public:
  using MakeWorker = std::function<std::unique_ptr<SampleMaker>(int worker)>;

  // `make_worker` is called on each worker's thread, so that its memory is first touched there.
  Loader(const LoaderOptions& options, MakeWorker make_worker);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, valid until the call after. Throws what a worker threw; then every later call does.
  const Batch& next();

 private:
  struct Slot {
    AlignedBytes own;
    Buffer lent;                // in place of it, where the options say how to allocate
    std::byte* data = nullptr;  // of one of them
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
  std::condition_variable room_;   // for workers: a slot became free, or stop
  std::condition_variable ready_;  // for the consumer: a batch is complete, or a worker failed
  std::int64_t next_position_ = 0;
  std::int64_t released_ = 0;  // batches that the consumer has given back
  std::int64_t delivered_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace assay::data
