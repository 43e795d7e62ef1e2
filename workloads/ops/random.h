// Fills buffers with random numbers, fast enough for gigabytes: every element is f(seed, purpose, index).
#pragma once

#include "harness/core/dtype.h"
#include "harness/core/rng.h"

#include <cstdint>

namespace assay::ops {

// Elements [begin, end) of a stream written to data[begin .. end): standard normal for floats (the middle of one of
// 65,536 equally likely slices of the distribution, so |x| < 4.4; f64 lies anywhere near it), uniform over the full
// range for u8 and s8. `seven_bits` keeps u8 in [0, 128). f64, f32, bf16, u8 and s8; throws Error for other types.
void fill_random(void* data, DType dtype, std::int64_t begin, std::int64_t end, const Rng& rng,
                 bool seven_bits = false);

}  // namespace assay::ops
