// What every communicator must do, written once and run over self, threads and MPI.
#pragma once

#include "harness/comm/communicator.h"

namespace assay::test {

// Runs every call on every type it takes, in place and out of place; reports through GoogleTest's EXPECT.
// `count` is the elements of one block; counts above a communicator's piece size are its pieces' test.
void expect_contract(Communicator& comm, std::size_t count);

}  // namespace assay::test
