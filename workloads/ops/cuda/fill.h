// Random fills of device memory by a kernel, with the values that workloads/ops/random.h writes on the host.
#pragma once

#include "harness/core/dtype.h"
#include "harness/core/rng.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::ops {

// Elements [0, count) of the stream into data, as fill_random() has them, to the bit. The first call on a device also
// allocates and uploads a table (256 KiB), so it cannot be captured. Throws Error for types that have no random fill.
void fill_random_on_device(void* data, DType dtype, std::int64_t count, const Rng& rng, cudaStream_t stream);

}  // namespace assay::ops
