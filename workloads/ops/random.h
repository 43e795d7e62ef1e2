// Fills buffers with random numbers, fast enough for gigabytes: every element is f(seed, purpose, index).
#pragma once

#include "harness/core/dtype.h"
#include "harness/core/rng.h"

#include <cstdint>
#include <vector>

namespace assay::ops {

// Elements [begin, end) of a stream written to data[begin .. end): standard normal for floats (the middle of one of
// 65,536 equally likely slices of the distribution, so |x| < 4.4; f64 lies anywhere near it), uniform over the full
// range for u8 and s8. `seven_bits` keeps u8 in [0, 128). Floats of any type, u8 and s8; throws Error for other types.
void fill_random(void* data, DType dtype, std::int64_t begin, std::int64_t end, const Rng& rng,
                 bool seven_bits = false);

// The middles of the 65,536 slices, for fills on other devices.
const std::vector<float>& normal_table();

}  // namespace assay::ops
