// Grids of variants. Apart from the kernels: nvcc does not compile what formats text.
#pragma once

#include "suites/memory/device_kernels.h"

#include <cstddef>

namespace assay::memory {

// Throws Error for a variant that there is no kernel of.
[[noreturn]] void refuse(const Variant& variant);
// The grid of a variant: as many blocks as there are tiles, or fewer that stride.
unsigned grid_of(const Variant& variant, std::size_t vectors);

}  // namespace assay::memory
