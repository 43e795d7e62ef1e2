// Small phrases that all reports share.
#pragma once

#include "harness/core/text.h"

#include <string>

namespace assay::report {

// "± 0.7 %", of a fraction.
std::string plus_minus(double fraction);

// Half an interval as a fraction of its figure: above 1 the figure is not usable, and 0 may lie within the interval.
inline constexpr double max_usable_half = 1;
// "± 0.7 %", or "no usable figure" above max_usable_half.
std::string precision_text(double half);

}  // namespace assay::report
