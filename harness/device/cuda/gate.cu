#include "harness/device/cuda/gate.h"

#include "harness/device/cuda/launch.h"

namespace assay::cuda {

namespace {

#ifdef ASSAY_CUDA_EMULATED
__device__ long long nanoseconds_now() { return clock64(); }
#else
__device__ long long nanoseconds_now() {
  long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}
#endif

__global__ void delay(long long nanoseconds) {
  const long long start = nanoseconds_now();
  while (nanoseconds_now() - start < nanoseconds) __nanosleep(1000);
}

__global__ void gate(GateWords* words, long long limit_nanoseconds) {
  volatile GateWords* const seen = words;
  const long long start = nanoseconds_now();
  while (seen->open == 0) {
    if (nanoseconds_now() - start >= limit_nanoseconds) {
      seen->timed_out = 1;
      return;
    }
    __nanosleep(200);
  }
}

}  // namespace

void enqueue_gate(GateWords* words, double limit_seconds, cudaStream_t stream) {
#ifdef ASSAY_CUDA_EMULATED
  // On inline streams the host could never open it.
  if (words->open == 0 && !emulation::gate_times_out()) return;
  limit_seconds = 0;
#endif
  launch(gate, 1, 1, 0, stream, words, static_cast<long long>(limit_seconds * 1e9));
}

void enqueue_delay(double seconds, cudaStream_t stream) {
  launch(delay, 1, 1, 0, stream, static_cast<long long>(seconds * 1e9));
}

cudaError_t has_code_for_current_device() {
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&gate));
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

bool emulated() {
#ifdef ASSAY_CUDA_EMULATED
  return true;
#else
  return false;
#endif
}

}  // namespace assay::cuda
