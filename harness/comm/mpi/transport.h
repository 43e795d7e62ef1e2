// The transports of this process's MPI, as far as its tool interface reports them.
#pragma once

#include <string>

namespace assay::mpi {

// "ob1, vader (cma)": Open MPI's messaging layer and the transports between the world's ranks, with how large messages
// are copied between processes. Empty if unknown. `nodes` counts the world's hosts.
std::string transport(int nodes);

}  // namespace assay::mpi
