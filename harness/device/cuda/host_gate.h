// A gate that the host opens, for streams of one device or of a copy between two.
#pragma once

#include "harness/device/cuda/gate.h"

#include <cuda_runtime_api.h>

namespace assay::cuda {

// Its words are in pinned memory, visible to every GPU. For use by one thread.
class HostGate {
 public:
  HostGate();
  // Opens it, and waits for the current GPU, which may still be polling.
  ~HostGate();
  HostGate(const HostGate&) = delete;
  HostGate& operator=(const HostGate&) = delete;

  // Call once per GPU before the first close() there: a kernel's first launch loads it, which waits for running
  // kernels.
  void load(cudaStream_t stream);
  // Blocks the stream until open(), for at most 5 s. Disabled after the first call if launches turn out to be
  // synchronous, as under CUDA_LAUNCH_BLOCKING and some sanitizers and debuggers.
  void close(cudaStream_t stream);
  void open();
  // Whether the gate last closed has opened by itself, or could not be closed; known once the work behind it is done.
  bool timed_out() const;

 private:
  GateWords* words_ = nullptr;
  bool launches_wait_ = false;
};

}  // namespace assay::cuda
