// How long a case will take, for --dry-run, progress and derived timeouts.
#pragma once

#include "harness/plan/plan.h"

namespace assay {

// About the longest time from the case's start to its record: filling and verifying its buffers, warm-up, and the
// protocol's limit on measuring (low noise may end it sooner). Assumes modest rates of a core or a GPU; no guarantee.
double estimate_seconds(const PlannedCase& planned, const World& world);

}  // namespace assay
