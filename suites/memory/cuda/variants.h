// Grids of variants, and how their blocks iterate. Separate from the kernels, since nvcc cannot compile text
// formatting.
#pragma once

#include "suites/memory/device_kernels.h"

#include <cstddef>
#include <cstdint>

namespace assay::memory {

// Throws Error for a variant without a kernel.
[[noreturn]] void refuse(const Variant& variant);

// How a kernel's blocks pass over an array several times.
struct Walk {
  std::size_t tiles;  // per pass
  std::size_t turns;  // tiles of all passes
  std::size_t step;   // from a block's tile to its next one, within a pass; less than `tiles`
  unsigned grid;      // blocks: one for each turn, or fewer blocks that stride
};
Walk walk_of(const Variant& variant, std::size_t vectors, std::uint64_t passes);

}  // namespace assay::memory
