// Ranks that an mpirun around this program started meet: rank 0 tells the others its address.
#pragma once

#include "harness/channel/channel.h"
#include "harness/hosts/allocation.h"

#include <memory>

namespace assay {

// Fills in supervisor, token and part of an allocation that is Part::unmet, through MPI in a short-lived child process.
// Returns the server on rank 0, null on the others. Throws UsageError, with an alternative, when the ranks cannot meet.
std::unique_ptr<ChannelServer> meet_through_mpi(Allocation& allocation);

}  // namespace assay
