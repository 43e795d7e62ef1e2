// The transfer suite: copies between a GPU and its host, inside a GPU, and between GPUs.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// `bandwidth` counts the bytes that arrive, in both directions if both run at once; `latency` is the time of a copy,
// for small sizes.
Family transfer_family();

}  // namespace assay
