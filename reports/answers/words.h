// Shared by the answers.
#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace assay::report {

// How precisely a figure must be known, and how much it may differ: compare's default.
inline constexpr double answer_tolerance = 0.03;

// "a, b, c and 5 more".
inline std::string first_of(const std::vector<std::string>& list) {
  constexpr std::size_t max_named = 3;
  const std::size_t shown = std::min(list.size(), max_named);
  std::string text =
      fmt::format("{}", fmt::join(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return list.size() > shown ? text + fmt::format(" and {} more", list.size() - shown) : text;
}

}  // namespace assay::report
