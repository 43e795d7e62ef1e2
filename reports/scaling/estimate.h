// Positive figures with their 95 % intervals, and what becomes of the intervals when figures are pooled and divided.
#pragma once

#include "reports/model/estimate.h"

#include <optional>
#include <span>

namespace assay::report::scaling {

// An estimate of what a file says; absent unless the value is finite and above 0. An interval that cannot be one of a
// positive figure (an end that is not finite or not above 0) is taken as unknown; one beside its value is widened to
// it.
std::optional<Estimate> positive(std::optional<double> value, const std::optional<Interval>& interval);

// The standard error of ln(value), from the interval's width; absent without one.
std::optional<double> relative_error(const Estimate& estimate);

// a / b. The interval is the MOVER one on logarithms, which keeps the two sides' own, unequal arms (Zou & Donner,
// "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008): with u and l the upper
// and lower arms of each logarithm, ln(a/b) - sqrt(la^2 + ub^2) and ln(a/b) + sqrt(ua^2 + lb^2). Absent unless both
// sides have one.
Estimate ratio(const Estimate& a, const Estimate& b);
Estimate scaled(const Estimate& estimate, double factor);  // factor > 0

// Several runs of one figure: their geometric mean. The interval is the wider of what the runs' scatter gives
// (Student's t on logarithms, k - 1 degrees of freedom) and what their own intervals give together (root of the sum of
// squared arms over k): few runs that happen to agree are not surer than each of them is. One: itself. Not empty.
Estimate pooled(std::span<const Estimate> runs);

// Student's t: the half width of a 95 % interval in standard errors; the normal one where `freedom` is 0.
double t95(int freedom);

}  // namespace assay::report::scaling
