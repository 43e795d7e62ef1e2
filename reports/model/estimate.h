// A figure with its 95 % interval, if it has one.
#pragma once

#include "harness/statistics/statistics.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace assay::report {

struct Estimate {
  double value = 0;
  std::optional<Interval> interval = {};
};

// The longer arm of the interval: it decides how many digits of the value are shown.
inline std::optional<double> half_width(const Estimate& estimate) {
  if (!estimate.interval) return std::nullopt;
  return std::max(estimate.interval->high - estimate.value, estimate.value - estimate.interval->low);
}

// What a scale must show: every value, and the ends of intervals within reach of them, so that no interval squeezes the
// figures. Ends lie within reach up to as far beyond the values as these span (with zero if `from_zero`); otherwise
// also up to three times the median half width. The other ends are to be drawn as cut.
std::vector<double> shown_values(std::span<const Estimate> estimates, bool from_zero);

}  // namespace assay::report
