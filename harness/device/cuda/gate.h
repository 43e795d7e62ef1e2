// A kernel that blocks its stream until the host opens it, so that what is enqueued behind it runs without gaps.
#pragma once

#include <cuda_runtime_api.h>

namespace assay::cuda {

// In pinned host memory; both start at zero.
struct GateWords {
  int open = 0;       // set by the host
  int timed_out = 0;  // set by the gate, if it ended by itself
};

// Enqueues the gate: it ends once it is open, or after `limit_seconds` in case the host never opens it.
void enqueue_gate(GateWords* words, double limit_seconds, cudaStream_t stream);
// Enqueues a single-thread kernel that runs for this long.
void enqueue_delay(double seconds, cudaStream_t stream);
// Whether this build has code for the current GPU (looked up for the gate kernel): cudaSuccess or the reason.
cudaError_t has_code_for_current_device();
// Whether this build runs on the emulation (tests/emulation), where timings mean nothing.
bool emulated();

}  // namespace assay::cuda
