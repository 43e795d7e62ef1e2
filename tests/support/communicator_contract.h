// The contract of every communicator, tested on self, threads and MPI.
#pragma once

#include "harness/comm/communicator.h"

namespace assay::test {

// Tests every call with every supported type, in place and out of place, by GoogleTest's EXPECT. `count` is the number
// of elements per block; counts above a communicator's piece size test its pieces.
void expect_contract(Communicator& comm, std::size_t count);

}  // namespace assay::test
