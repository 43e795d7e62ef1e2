// A rule beside the two keys, for steps so large that few nights decide: several nights in a row beyond the range of
// the nights before.
#pragma once

#include <cstddef>
#include <span>

namespace assay::history {

inline constexpr std::size_t large_recent = 8;  // the most nights in a row that are looked at; more say no more

// The probability, under no change and in the worst of the kinds of noise that tools/history simulates, that the last
// nights are all on one side of those before and as far away as the nearest of them is. `recent`: 4 to large_recent
// nights. `before`: at least 15 (1 is returned for fewer), of which the last 30 count; the furthest of them may be an
// outlier. 1 if the median of `recent` is not further than 2.5 median absolute deviations.
double large_step_p(std::span<const double> recent, std::span<const double> before);

}  // namespace assay::history
