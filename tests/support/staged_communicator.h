// A communicator for GPUs, given host memory: each buffer goes to device memory and back, so that the communicators'
// contract, written for the host, holds them too.
#pragma once

#include "harness/comm/communicator.h"

namespace assay::test {

// Both must outlive what is returned, whose calls have done their work when they return.
std::unique_ptr<Communicator> make_staged_communicator(Communicator& inner, Device& device);

}  // namespace assay::test
