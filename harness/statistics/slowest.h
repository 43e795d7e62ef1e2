// The slowest of several ranks beside the others.
#pragma once

#include "harness/statistics/statistics.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace assay {

struct Slowest {
  std::size_t index = 0;
  double seconds = 0;
  double others = 0;  // their median

  // Less comes from the ranks' arrival at a barrier.
  static constexpr double min_difference = 10e-6;
  bool stands_out() const { return seconds - others >= min_difference; }
  double ratio() const { return seconds / others; }
};

// The slowest of at least two positive paces, in seconds; nothing for fewer.
inline std::optional<Slowest> slowest_of(std::span<const double> paces) {
  if (paces.size() < 2) return std::nullopt;
  const auto at = std::ranges::max_element(paces);
  std::vector<double> others(paces.begin(), at);
  others.insert(others.end(), at + 1, paces.end());
  return Slowest{static_cast<std::size_t>(at - paces.begin()), *at, median(others)};
}

}  // namespace assay
