#include "reports/model/estimate.h"

#include <algorithm>

namespace assay::report {

std::vector<double> shown_values(std::span<const Estimate> estimates, bool from_zero) {
  std::vector<double> shown, halves;
  for (const Estimate& one : estimates) {
    shown.push_back(one.value);
    if (const auto half = half_width(one)) halves.push_back(*half);
  }
  if (halves.empty()) return shown;
  auto [low, high] = std::ranges::minmax(shown);
  if (from_zero) low = std::min(low, 0.0), high = std::max(high, 0.0);
  const double reach = from_zero ? high - low : std::max(high - low, 3 * median(halves));
  for (const Estimate& one : estimates)
    if (one.interval)
      for (const double end : {one.interval->low, one.interval->high})
        if (end >= low - reach && end <= high + reach) shown.push_back(end);
  return shown;
}

}  // namespace assay::report
