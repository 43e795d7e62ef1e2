#include "workloads/nn/reducer.h"

#include "harness/core/clock.h"
#include "harness/core/error.h"
#include "harness/device/cpu/team.h"

#include <utility>

namespace assay::nn {

Reducer::Reducer(Communicator& comm, Device& device)
    : comm_(comm), stream_(device.make_stream()), thread_([this] { loop(); }) {}

Reducer::~Reducer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    jobs_.clear();
  }
  wake_.notify_one();
  thread_.join();
}

void Reducer::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    ++submitted_;
    if (failure_) return;
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void Reducer::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return jobs_.empty() && !busy_; });
  if (failure_) std::rethrow_exception(failure_);
}

void Reducer::wait_for(std::size_t jobs) {
  std::unique_lock lock(mutex_);
  awaited_ = jobs;
  idle_.wait(lock, [&] { return ended_ >= jobs || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void Reducer::loop() {
  try {
    // The thread inherited the one CPU of the thread that computes.
    cpu::bind_this_thread(cpu::rank_cpus());
  } catch (const Error&) {  // forbidden in a sandbox
  }
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    const double cpu = seconds_on(CLOCK_THREAD_CPUTIME_ID), wall = seconds_on(CLOCK_MONOTONIC);
    try {
      job(comm_, *stream_);
      stream_->synchronize();
    } catch (...) {
      failure = std::current_exception();
    }
    const double cpu_end = seconds_on(CLOCK_THREAD_CPUTIME_ID), wall_end = seconds_on(CLOCK_MONOTONIC);
    lock.lock();
    cpu_seconds_ += cpu_end - cpu;
    wall_seconds_ += wall_end - wall;
    busy_ = false;
    ++ended_;
    if (failure) {
      failure_ = failure;
      jobs_.clear();
    }
    if (jobs_.empty() || ended_ == awaited_) idle_.notify_all();
  }
}

}  // namespace assay::nn
