// The gate that the host opens: what a device and a copy between two of them hold their streams back with.
#pragma once

#include <cuda_runtime_api.h>

namespace assay::cuda {

// Its flag lies in pinned memory, which every GPU sees. Of one thread.
class HostGate {
 public:
  HostGate();
  // Opens it, and waits for the current GPU, which may still be looking at the flag.
  ~HostGate();
  HostGate(const HostGate&) = delete;
  HostGate& operator=(const HostGate&) = delete;

  // Once on each GPU before the first close() there: a kernel is loaded at its first launch, which waits for others.
  void load(cudaStream_t stream);
  // Holds back what follows on the stream until open(), at most 5 s. Not where launches end with their kernels, as
  // under CUDA_LAUNCH_BLOCKING and some sanitizers and debuggers: the first call notices.
  void close(cudaStream_t stream);
  void open();

 private:
  int* flag_ = nullptr;
  bool launches_wait_ = false;
};

}  // namespace assay::cuda
