// Fills buffers with random numbers, fast enough for gigabytes: every element is f(seed, purpose, index).
#pragma once

#include "harness/core/dtype.h"
#include "harness/core/rng.h"

#include <cstdint>
#include <vector>

namespace assay::ops {

// Writes elements [begin, end) of a stream to data[begin .. end): standard normal for floats (the midpoint of one of
// 65,536 equally likely slices of the distribution, so |x| < 4.4; for f64 any point of the slice), uniform over the
// full range for u8 and s8. `seven_bits` keeps u8 in [0, 128). Throws Error for other types.
void fill_random(void* data, DType dtype, std::int64_t begin, std::int64_t end, const Rng& rng,
                 bool seven_bits = false);

// The midpoints of the 65,536 slices, for fills on other devices.
const std::vector<float>& normal_table();

}  // namespace assay::ops
