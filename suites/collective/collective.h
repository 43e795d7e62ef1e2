// The collective suite: the communicator's calls between the ranks of a world, counted as in nccl-tests.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// algbw = S / t, busbw = algbw x factor (suites/collective/layout.h), latency = t. With one rank the calls are copies.
Family collective_family();

}  // namespace assay
