// A figure with its 95 % interval, if it has one.
#pragma once

#include "harness/statistics/statistics.h"

#include <algorithm>
#include <optional>

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

}  // namespace assay::report
