#include "harness/sampling/straggler.h"

#include "harness/statistics/statistics.h"

#include <algorithm>
#include <vector>

namespace assay {

namespace {

constexpr double min_straggler_ratio = 1.5;
constexpr double min_seconds = 10e-6;

}  // namespace

std::optional<Straggler> find_straggler(std::span<const double> paces) {
  if (paces.size() < 2 || std::any_of(paces.begin(), paces.end(), [](double pace) { return !(pace > 0); }))
    return std::nullopt;
  const auto slowest = std::max_element(paces.begin(), paces.end());
  std::vector<double> others(paces.begin(), paces.end());
  others.erase(others.begin() + (slowest - paces.begin()));
  const double usual = median(others);
  if (*slowest < min_straggler_ratio * usual || *slowest - usual < min_seconds) return std::nullopt;
  return Straggler{static_cast<int>(slowest - paces.begin()), *slowest / usual};
}

}  // namespace assay
