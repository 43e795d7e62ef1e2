// Shared checks of descriptors. A problem is one line of text; nothing if the descriptor is valid.
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
// The first type that is not a floating-point type stored in 16 bits or more.
std::optional<std::string> problem_of_types(std::initializer_list<DType> dtypes);
// What elements are stored as: tf32 is a precision of products, not a storage type.
constexpr DType storage_type(DType dtype) { return dtype == DType::tf32 ? DType::f32 : dtype; }

}  // namespace assay::ops
