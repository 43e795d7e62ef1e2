// Grids of variants, and the way of their blocks. Apart from the kernels: nvcc does not compile what formats text.
#pragma once

#include "suites/memory/device_kernels.h"

#include <cstddef>
#include <cstdint>

namespace assay::memory {

// Throws Error for a variant that there is no kernel of.
[[noreturn]] void refuse(const Variant& variant);

// How the blocks of a kernel go over an array several times.
struct Walk {
  std::size_t tiles;  // of one pass
  std::size_t turns;  // tiles of all passes
  std::size_t step;   // from one tile of a block to its next, within a pass; less than `tiles`
  unsigned grid;      // as many blocks as there are turns, or fewer that stride
};
Walk walk_of(const Variant& variant, std::size_t vectors, std::uint64_t passes);

}  // namespace assay::memory
