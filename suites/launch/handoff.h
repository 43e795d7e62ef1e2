// Two ways of handing a task to another thread and waiting for its answer. One thread sends, another answers; tasks are
// numbered, so that both notice a lost or repeated one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace assay::launch {

// The task's work: enough to prove that it ran, too little to be timed.
inline std::uint64_t answer_of(std::uint64_t task) { return ~task; }

// Both threads poll a cache line that the other writes.
class SpinHandoff {
 public:
  std::uint64_t send(std::uint64_t task) {
    task_.store(task, std::memory_order_release);
    std::uint64_t answer = 0;
    while ((answer = answer_.load(std::memory_order_acquire)) == last_answer_) {
    }
    return last_answer_ = answer;
  }
  // Waits for a task and answers it; returns the task.
  std::uint64_t answer_next() {
    std::uint64_t task = 0;
    while ((task = task_.load(std::memory_order_acquire)) == last_task_) {
    }
    last_task_ = task;
    answer_.store(answer_of(task), std::memory_order_release);
    return task;
  }

 private:
  alignas(128) std::atomic<std::uint64_t> task_{0};
  std::uint64_t last_answer_ = 0;  // the sender's
  alignas(128) std::atomic<std::uint64_t> answer_{0};
  std::uint64_t last_task_ = 0;  // the answering thread's
};

// Both threads sleep until the other wakes them.
class BlockHandoff {
 public:
  std::uint64_t send(std::uint64_t task) {
    std::unique_lock lock(mutex_);
    task_ = task;
    waiting_ = true;
    sent_.notify_one();
    answered_.wait(lock, [&] { return !waiting_; });
    return answer_;
  }
  std::uint64_t answer_next() {
    std::unique_lock lock(mutex_);
    sent_.wait(lock, [&] { return waiting_; });
    answer_ = answer_of(task_);
    waiting_ = false;
    answered_.notify_one();
    return task_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable sent_;
  std::condition_variable answered_;
  bool waiting_ = false;
  std::uint64_t task_ = 0;
  std::uint64_t answer_ = 0;
};

}  // namespace assay::launch
