// The launch suite: what it costs to start work on this rank's threads or its GPU.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// latency of one entry into and exit from a parallel region (fork_join), or of one task handed to another thread and
// answered (handoff_spin: both threads poll; handoff_block: they sleep on condition variables). On a GPU, by the host's
// clock: one empty kernel of many in a row (kernel), or launched and waited for (kernel_wait); one node of a graph of
// 100 empty kernels that is replayed (graph), or its launch and the wait for all of it (graph_wait); two events, the
// wait for them and the time between them (event); 4 bytes copied to or from pinned memory and waited for (copy_h2d,
// copy_d2h).
Family launch_family();

}  // namespace assay
