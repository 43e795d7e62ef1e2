#include "harness/device/cuda/host_gate.h"

#include "harness/device/cuda/check.h"
#include "harness/device/cuda/gate.h"

#include <atomic>
#include <chrono>

namespace assay::cuda {

namespace {

constexpr double max_wait = 5.0;  // seconds

}  // namespace

HostGate::HostGate() {
  ASSAY_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&flag_), sizeof *flag_, cudaHostAllocPortable));
  open();
}

HostGate::~HostGate() {
  open();
  cudaDeviceSynchronize();
  cudaFreeHost(flag_);
}

void HostGate::load(cudaStream_t stream) {
  open();
  enqueue_gate(flag_, max_wait, stream);
}

void HostGate::close(cudaStream_t stream) {
  using Clock = std::chrono::steady_clock;
  if (launches_wait_) return;
  std::atomic_ref<int>(*flag_).store(0, std::memory_order_release);
  const Clock::time_point before = Clock::now();
  enqueue_gate(flag_, max_wait, stream);
  launches_wait_ = std::chrono::duration<double>(Clock::now() - before).count() > 0.5 * max_wait;
}

void HostGate::open() { std::atomic_ref<int>(*flag_).store(1, std::memory_order_release); }

}  // namespace assay::cuda
