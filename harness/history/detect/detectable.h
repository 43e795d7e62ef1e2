// How small a step is still found.
#pragma once

#include "harness/history/detect/detector.h"

#include <cstddef>

namespace assay::history {

// A test at the place that suits a step best counts as this many.
inline constexpr double placed_tests = 8;
inline constexpr std::size_t detectable_nights = 14;

// The smallest step that is found within 14 nights in 80 % of cases, if the noise has standard deviation `sigma` and
// the size of the step then has the standard error `spread`. `tests` is how many series are tested.
double detectable_step(double sigma, double spread, const Options& options, std::size_t tests);
// `unsteady`: two recoveries in 90 nights.
bool is_flaky(bool unsteady, double sigma, double spread, const Options& options, std::size_t tests);

}  // namespace assay::history
