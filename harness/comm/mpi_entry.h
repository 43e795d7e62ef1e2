// The functions that libassay-mpi.so exports. Includes no MPI header, so the binary does not need MPI.
#pragma once

#include "harness/comm/communicator.h"

#include <cstddef>
#include <limits>

namespace assay {

// Returns a new communicator over the whole world, owned by the caller; the first call initialises MPI. Calls with more
// than `max_count` elements are split into pieces (tests pass a small one).
using MpiEntry = Communicator* (*)(MpiThreads threads, std::size_t max_count);

inline constexpr const char* mpi_entry_name = "assay_mpi_communicator";
inline constexpr std::size_t mpi_max_count = std::numeric_limits<int>::max();

}  // namespace assay
