// Ranks as threads of one process, to test collective logic without a launcher.
#pragma once

#include "harness/comm/communicator.h"

#include <functional>

namespace assay::test {

// Runs fn on `ranks` threads, each with its own communicator of that world; returns when all have ended. Rethrows the
// first exception of any rank; a rank that throws must not leave others inside a collective.
void run_ranks(int ranks, const std::function<void(Communicator&)>& fn);

}  // namespace assay::test
