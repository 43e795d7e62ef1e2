#include "harness/device/cuda/host_gate.h"

#include "harness/core/clock.h"
#include "harness/device/cuda/check.h"

#include <atomic>

namespace assay::cuda {

namespace {

constexpr double max_wait = 5.0;  // seconds

}  // namespace

HostGate::HostGate() {
  ASSAY_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&words_), sizeof *words_, cudaHostAllocPortable));
  *words_ = {};
  open();
}

HostGate::~HostGate() {
  open();
  cudaDeviceSynchronize();
  cudaFreeHost(words_);
}

void HostGate::load(cudaStream_t stream) {
  open();
  enqueue_gate(words_, max_wait, stream);
}

void HostGate::close(cudaStream_t stream) {
  if (launches_wait_) return;
  std::atomic_ref<int>(words_->timed_out).store(0, std::memory_order_relaxed);
  std::atomic_ref<int>(words_->open).store(0, std::memory_order_release);
  const Clock::time_point before = Clock::now();
  enqueue_gate(words_, max_wait, stream);
  launches_wait_ = seconds_since(before) > 0.5 * max_wait;
}

void HostGate::open() { std::atomic_ref<int>(words_->open).store(1, std::memory_order_release); }

bool HostGate::timed_out() const {
  return launches_wait_ || std::atomic_ref<int>(words_->timed_out).load(std::memory_order_acquire) != 0;
}

}  // namespace assay::cuda
