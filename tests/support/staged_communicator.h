// A communicator for GPUs that accepts host memory: copies each buffer to device memory and back, so that the contract,
// written for the host, also tests GPU communicators.
#pragma once

#include "harness/comm/communicator.h"

namespace assay::test {

// Both must outlive the result. Its calls are complete when they return.
std::unique_ptr<Communicator> make_staged_communicator(Communicator& inner, Device& device);

}  // namespace assay::test
