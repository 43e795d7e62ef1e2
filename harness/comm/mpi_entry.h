// What libassay-mpi.so exports. Includes nothing of MPI, so that the binary needs none.
#pragma once

#include "harness/comm/communicator.h"

#include <cstddef>
#include <limits>

namespace assay {

// Returns a new communicator over the whole world, owned by the caller; initialises MPI at the first call.
// Calls with more than `largest_count` elements are cut into pieces (tests pass a small one).
using MpiEntry = Communicator* (*)(MpiThreads threads, std::size_t largest_count);

inline constexpr const char* mpi_entry_name = "assay_mpi_communicator";
inline constexpr std::size_t mpi_largest_count = std::numeric_limits<int>::max();

}  // namespace assay
