// The launch suite: the cost of starting work on this rank's threads or its GPU.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// `latency` on a CPU:
//   fork_join      entering and leaving a parallel region
//   handoff_spin   handing a task to another thread and getting its answer; both threads poll
//   handoff_block  the same; both sleep on condition variables
// On a GPU, by the host's clock:
//   kernel, kernel_wait  an empty kernel, one of many in a row; or launched and waited for
//   graph, graph_wait    one node of a replayed graph of 100 empty kernels; or launching and awaiting the whole graph
//   event                recording two events, waiting for them and reading the time between them
//   copy_h2d, copy_d2h   copying 4 bytes to or from pinned memory and waiting
Family launch_family();

}  // namespace assay
