#include "workloads/data/loader.h"

#include "harness/core/error.h"
#include "harness/device/cpu/team.h"

#include <cstring>
#include <numeric>

namespace assay::data {

Loader::Loader(const LoaderOptions& options, MakeWorker make_worker)
    : options_(options), make_worker_(std::move(make_worker)), slots_(static_cast<std::size_t>(options.prefetch)) {
  ASSAY_CHECK(options.workers >= 1 && options.batch >= 1 && options.prefetch >= 2 && options.grain >= 1 &&
              options.batch % options.grain == 0);
  const auto batch = static_cast<std::size_t>(options.batch);
  for (Slot& slot : slots_) {
    const std::size_t bytes = batch * static_cast<std::size_t>(options.sample_bytes);
    if (options.allocate && bytes) {
      slot.allocated = options.allocate(bytes);
      slot.data = slot.allocated.as<std::byte>();
    } else {
      slot.ordinary.reserve(bytes);
      slot.data = slot.ordinary.data();
    }
    if (bytes) std::memset(slot.data, 0, bytes);
    slot.labels.resize(batch);
    slot.indices.resize(batch);
    slot.bytes.resize(batch);
    slot.remaining = options.batch;
  }
  try {
    for (int worker = 0; worker < options.workers; ++worker) threads_.emplace_back([this, worker] { run(worker); });
  } catch (...) {
    {
      const std::lock_guard guard(mutex_);
      stop_ = true;
    }
    slot_free_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

Loader::~Loader() {
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  slot_free_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::run(int worker) {
  try {
    work(worker);
  } catch (...) {
    const std::lock_guard guard(mutex_);
    if (!error_) error_ = std::current_exception();
    stop_ = true;
    batch_ready_.notify_all();
    slot_free_.notify_all();
  }
}

void Loader::work(int worker) {
  if (!options_.cpus.empty())
    cpu::bind_this_thread({options_.cpus[static_cast<std::size_t>(worker) % options_.cpus.size()]});
  const std::unique_ptr<SampleMaker> maker = make_worker_(worker);
  std::unique_lock lock(mutex_);
  while (true) {
    slot_free_.wait(lock, [this] { return stop_ || next_position_ / options_.batch < released_ + options_.prefetch; });
    if (stop_) return;
    const std::int64_t first = next_position_;
    next_position_ += options_.grain;
    lock.unlock();
    Slot& slot = slots_[static_cast<std::size_t>(first / options_.batch % options_.prefetch)];
    for (std::int64_t position = first; position < first + options_.grain; ++position) {
      const auto row = static_cast<std::size_t>(position % options_.batch);
      maker->make(position, {slot.data + row * static_cast<std::size_t>(options_.sample_bytes), &slot.labels[row],
                             &slot.indices[row], &slot.bytes[row]});
    }
    lock.lock();
    slot.remaining -= options_.grain;
    if (slot.remaining == 0) batch_ready_.notify_one();
  }
}

const Batch& Loader::next() {
  std::unique_lock lock(mutex_);
  if (delivered_ > released_) {
    slots_[static_cast<std::size_t>(released_ % options_.prefetch)].remaining = options_.batch;
    ++released_;
    slot_free_.notify_all();
  }
  Slot& slot = slots_[static_cast<std::size_t>(delivered_ % options_.prefetch)];
  batch_ready_.wait(lock, [&] { return error_ || slot.remaining == 0; });
  if (error_) std::rethrow_exception(error_);
  current_ = {delivered_, slot.data, slot.labels, slot.indices,
              std::accumulate(slot.bytes.begin(), slot.bytes.end(), std::int64_t{0})};
  ++delivered_;
  return current_;
}

}  // namespace assay::data
