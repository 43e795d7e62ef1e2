// What the checks of descriptors share. A problem is one clear line, nothing when the descriptor is sound.
#pragma once

#include "harness/core/dtype.h"

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

namespace assay::ops {

// The first of the named sizes that is below 1.
std::optional<std::string> problem_of_sizes(std::initializer_list<std::pair<const char*, std::int64_t>> sizes);
// The first type that is not stored as a floating-point number of 16 bits or more.
std::optional<std::string> problem_of_types(std::initializer_list<DType> dtypes);

}  // namespace assay::ops
