// The collective suite: the communicator's calls between the ranks of a world, counted as nccl-tests does.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// algbw = S / t, busbw = algbw x factor (suites/collective/layout.h), latency = t. One rank times its copies.
Family collective_family();

}  // namespace assay
