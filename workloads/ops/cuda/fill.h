// Fills device memory with random values by a kernel; the values are those of workloads/ops/random.h.
#pragma once

#include "harness/core/dtype.h"
#include "harness/core/rng.h"

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::ops {

// Writes elements [0, count) of the random stream to data, bit for bit as fill_random() does. The first call on a
// device also allocates and uploads a table (256 KiB), so it cannot be captured. Throws Error for types without random
// fill.
void fill_random_on_device(void* data, DType dtype, std::int64_t count, const Rng& rng, cudaStream_t stream);

}  // namespace assay::ops
