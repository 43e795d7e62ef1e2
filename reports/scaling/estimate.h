// Positive figures and how their 95 % intervals carry over when figures are pooled and divided. In these
// Estimates, value and interval ends are finite and above 0, and the interval contains the value.
#pragma once

#include "reports/model/estimate.h"

#include <optional>
#include <span>

namespace assay::report::scaling {

// Checks a value from a file; absent unless the value is finite and above 0. An interval with an end that is not finite
// or not above 0 becomes unknown; one that misses its value is widened to contain it.
std::optional<Estimate> positive(std::optional<double> value, const std::optional<Interval>& interval);

// The standard error of ln(value), from the interval's width; absent without one.
std::optional<double> relative_error(const Estimate& estimate);

// a / b. The interval is MOVER's on logarithms, which keeps the unequal arms of both sides (Zou & Donner, "Construction
// of confidence limits about effect measures", Statistics in Medicine 27, 2008): with u and l the upper and lower arms
// of each logarithm, ln(a/b) - sqrt(la^2 + ub^2) and ln(a/b) + sqrt(ua^2 + lb^2). Absent unless both sides have one.
Estimate ratio(const Estimate& a, const Estimate& b);
Estimate scaled(const Estimate& estimate, double factor);  // factor > 0

// The geometric mean of several runs' figures. The interval is the wider of that from the runs' scatter (Student's t on
// logarithms, k - 1 degrees of freedom) and that from their own intervals (root of the sum of squared arms over k), so
// that a few runs that happen to agree do not look more certain than each is. A single run gives its own figure. `runs`
// is not empty.
Estimate pooled(std::span<const Estimate> runs);

// Student's t: half the width of a 95 % interval in standard errors; the normal quantile if `freedom` is 0.
double t95(int freedom);

}  // namespace assay::report::scaling
