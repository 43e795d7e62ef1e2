// How long a case will take, for --dry-run, progress and derived timeouts.
#pragma once

#include "harness/plan/plan.h"

namespace assay {

// Seconds from the case's start to its record, at most about: filling and verifying what it holds, warm-up, and the
// protocol's limit on measuring (noise may end it sooner). From modest rates of a core or a GPU; no promise.
double estimate_seconds(const PlannedCase& planned, const World& world);

}  // namespace assay
