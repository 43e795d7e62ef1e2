// Random operands whose sums are exact, and what the sums must be.
#pragma once

#include "suites/peak/kernels.h"

#include <cstdint>
#include <vector>

namespace assay::peak {

// Floats: x and y0 are 32nds of either sign with 0.5 <= |v| < 1.5, y1 = -y0 +- 1/64. Every partial sum of a
// pass is then a multiple of 2^-11 below 2^12, so exact in f32 in any order. int8: x any u8, y0 in [-126, 126],
// y1 = -y0 +- 1.
Operands make_operands(const Kernel& kernel, std::uint64_t seed);

// The sums after one pass, in closed form: accumulator i, lane l holds i + pairs * (x . y0 + x . y1) over the products
// of that lane. As the kernel writes them, sum_bytes() long.
std::vector<std::byte> expected_sums(const Kernel& kernel, const Operands& operands);

// A sum as a number.
double sum_at(const Kernel& kernel, const void* sums, std::size_t index);

}  // namespace assay::peak
