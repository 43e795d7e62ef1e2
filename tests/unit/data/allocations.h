// Counts the heap allocations of this program, including its libraries.
#pragma once

#include <cstdint>

namespace assay::data::test {

std::uint64_t allocations();

}  // namespace assay::data::test
