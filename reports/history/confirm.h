// Which suspect to measure again tonight, and how sure the verdict must be.
#pragma once

#include "harness/statistics/sequential.h"
#include "reports/history/events.h"

#include <cstddef>
#include <vector>

namespace assay::history {

// The suspect to confirm next: among those not dismissed, the largest step beyond any excursion of its series, else the
// first; null if there is none.
const Suspect* to_confirm(const std::vector<Suspect>& suspects);

// The error that a night's next confirmation may have, after `earlier` confirmations of the same night: half of the
// share that these have left of confirm_share, so that all of them together stay within it.
double confirm_error(const Options& options, std::size_t earlier);

// Whether B (tonight's build) against A (the last good one) confirms a step of that direction.
bool is_confirmed(Direction verdict, bool slower);

}  // namespace assay::history
