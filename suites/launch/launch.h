// The launch suite: what it costs to start work on this rank's threads.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// latency of one entry into and exit from a parallel region (fork_join), or of one task handed to another thread and
// answered (handoff_spin: both threads poll; handoff_block: they sleep on condition variables).
Family launch_family();

}  // namespace assay
