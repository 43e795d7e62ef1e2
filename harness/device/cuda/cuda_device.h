// An NVIDIA GPU as a Device, made by libassay-cuda.so.
#pragma once

#include "harness/device/device.h"

#include <memory>
#include <optional>

namespace assay::cuda {

// The number of GPUs this process sees. Throws Error with a remedy if there are none, or the driver is missing or too
// old for the toolkit.
int device_count();

// The GPU of `local_rank` among those in CUDA_VISIBLE_DEVICES; becomes the calling thread's current one. If
// ASSAY_SHARE_GPU is set, ranks share GPUs round robin. Throws Error, naming the driver, the GPUs and a remedy, if
// there is no GPU, the driver is too old for the toolkit, this build has no code for the GPU's architecture, or there
// are fewer GPUs than ranks.
std::unique_ptr<Device> make_cuda_device(int local_rank);

// The NUMA node of the host next to a GPU: as the kernel says, or CUDA, since a container may hide the kernel's files.
// Absent if neither knows it.
std::optional<int> numa_node_of(int gpu);

// A stream of the highest priority.
std::unique_ptr<Stream> make_urgent_stream();

}  // namespace assay::cuda
