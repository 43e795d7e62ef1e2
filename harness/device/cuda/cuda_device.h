// An NVIDIA GPU as a device: what libassay-cuda.so makes of the rank's place on its host.
#pragma once

#include "harness/device/device.h"

#include <memory>

namespace assay::cuda {

// How many GPUs this process sees. Throws Error, with the remedy, where that is none, or the driver is missing or older
// than the toolkit.
int device_count();

// The GPU of `local_rank` among those that CUDA_VISIBLE_DEVICES leaves; made the calling thread's current one. Where
// ASSAY_SHARE_GPU is set, ranks take turns at the GPUs there are. Throws Error that names the driver, the GPUs and the
// remedy where there is none, the driver is older than the toolkit, the GPU is of an architecture that this build has
// no code for, or there are fewer GPUs than ranks.
std::unique_ptr<Device> make_cuda_device(int local_rank);

// A stream of the highest priority there is.
std::unique_ptr<Stream> make_urgent_stream();

}  // namespace assay::cuda
