// Series of counts (instructions, allocations), which hardly vary: each night is judged by itself.
#pragma once

#include "harness/history/detect/regimes.h"

#include <cstddef>

namespace assay::history {

inline constexpr double count_tolerance = 0.001;  // smaller changes of a count do not alarm
inline constexpr std::size_t count_nights = 5;    // nights before the first that is judged

// Whether two or more of the first count_nights differ from the night before by the tolerance: then what is called a
// count varies by itself, and is judged as other figures are. False if there are fewer nights.
bool varies(const Track& track);

// Does what walk() does, for a count: a night further from its regime than the tolerance is a change at once, and over
// when the count is back within max_excursion. A count that began to vary must differ by four times what it usually
// does from night to night.
void walk_count(const Track& track, const WalkRange& range, Walked& walked);

}  // namespace assay::history
