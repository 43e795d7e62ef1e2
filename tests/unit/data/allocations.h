// Counts what this program takes from the heap, libraries included.
#pragma once

#include <cstdint>

namespace assay::data::test {

std::uint64_t allocations();

}  // namespace assay::data::test
