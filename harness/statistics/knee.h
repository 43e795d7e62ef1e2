// Where a rate stops growing.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace assay {

inline constexpr double knee_share = 0.03;

// The index of the first rate within knee_share of the highest one. Absent rates are passed over; absent if all are.
std::optional<std::size_t> knee_of(std::span<const std::optional<double>> rates);

}  // namespace assay
