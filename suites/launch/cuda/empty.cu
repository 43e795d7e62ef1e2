// A kernel that does nothing, or counts its launches.
#include "harness/device/cuda/launch.h"
#include "harness/device/cuda/native.h"

namespace assay::launch {

namespace {

// Launches on one stream are serialised: no atomic is needed.
__global__ void empty(unsigned* counter) {
  if (counter) ++*counter;
}

}  // namespace

}  // namespace assay::launch

// Enqueues the kernel; `counter` is in device memory, or null.
extern "C" void assay_cuda_launch_empty(assay::Stream& stream, unsigned* counter) {
  assay::cuda::launch(assay::launch::empty, 1, 1, 0, assay::cuda::native(stream), counter);
}
