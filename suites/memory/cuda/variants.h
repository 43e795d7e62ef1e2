// Grids of variants, and the order of their tiles. Separate from the kernels, since nvcc does not compile fmt.
#pragma once

#include "suites/memory/device_kernels.h"

#include <cstddef>
#include <cstdint>

namespace assay::memory {

// Throws Error for a variant without a kernel.
[[noreturn]] void refuse(const Variant& variant);

// How the blocks of a kernel pass over an array several times.
struct Walk {
  std::size_t tiles;  // per pass
  std::size_t turns;  // tiles of all passes
  std::size_t step;   // from one tile of a block to its next within a pass; less than `tiles`
  unsigned grid;      // one block per turn, or fewer that stride
};
Walk walk_of(const Variant& variant, std::size_t vectors, std::uint64_t passes);

}  // namespace assay::memory
