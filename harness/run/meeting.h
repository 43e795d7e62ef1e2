// Ranks that an mpirun around this program started: rank 0 tells the others where it listens.
#pragma once

#include "harness/channel/channel.h"
#include "harness/hosts/allocation.h"

#include <memory>

namespace assay {

// Through MPI, in a child process that lives for this alone: fills in supervisor, token and part of an allocation that
// is Part::unmet. Returns rank 0's server, nothing elsewhere. Throws UsageError that says what to do instead when the
// ranks cannot meet so.
std::unique_ptr<ChannelServer> meet_through_mpi(Allocation& allocation);

}  // namespace assay
