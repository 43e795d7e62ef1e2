// What moves the bytes of this process's MPI, as far as its tool interface tells.
#pragma once

#include <string>

namespace assay::mpi {

// "ob1, vader (cma)": Open MPI's messaging layer and the byte transports between the world's ranks, with the way
// large messages are copied between processes. Empty where it cannot be known. `nodes` are the world's hosts.
std::string transport(int nodes);

}  // namespace assay::mpi
