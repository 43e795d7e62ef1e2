// A kernel that holds its stream until the host says go, so that what is enqueued behind it starts without gaps.
#pragma once

#include <cuda_runtime_api.h>

namespace assay::cuda {

// Enqueues the gate: it ends once *flag is not zero (pinned host memory), or after `limit_seconds`, lest a host that
// never comes back leaves the GPU spinning.
void enqueue_gate(const int* flag, double limit_seconds, cudaStream_t stream);
// Enqueues a kernel of one thread that takes so long.
void enqueue_delay(double seconds, cudaStream_t stream);
// Whether this build has code for the current GPU, found by asking for the gate's; cudaSuccess or the reason.
cudaError_t has_code_for_current_device();
// Whether kernels of this build run on the emulation (tests/emulation), where nothing can be measured.
bool emulated();

}  // namespace assay::cuda
