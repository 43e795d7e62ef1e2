// Random operands whose sums are exact, and the expected sums.
#pragma once

#include "suites/peak/kernels.h"

#include <cstdint>
#include <vector>

namespace assay::peak {

// Floats: x and y0 are multiples of 1/32 of either sign with 0.5 <= |v| < 1.5, y1 = -y0 +- 1/64. Every partial sum of a
// pass is then a multiple of 2^-11 below 2^12, so exact in f32 in any order. int8: x any u8, y0 in [-126, 126],
// y1 = -y0 +- 1.
Operands make_operands(const Kernel& kernel, std::uint64_t seed);

// The sums after one pass, in closed form: lane l of accumulator i is i + pairs * (x . y0 + x . y1) over the products
// of that lane. In the kernel's output format, sum_bytes() long.
std::vector<std::byte> expected_sums(const Kernel& kernel, const Operands& operands);

// A sum as a double.
double sum_at(const Kernel& kernel, const void* sums, std::size_t index);

}  // namespace assay::peak
