// The transfer suite: copies between a GPU and its host, inside a GPU, and between GPUs.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// bandwidth counts the bytes that arrive: of both ways where both run at once. A copy's own time is `latency`, given
// for small sizes.
Family transfer_family();

}  // namespace assay
