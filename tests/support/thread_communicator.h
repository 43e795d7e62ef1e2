// Ranks as threads of one process, so that collective logic is tested without a launcher.
#pragma once

#include "harness/comm/communicator.h"

#include <functional>

namespace assay::test {

// Runs fn on `ranks` threads, each with its own communicator of that world; returns when all have ended.
// The first exception of any rank is thrown again; a rank that throws must not leave others inside a collective.
void run_ranks(int ranks, const std::function<void(Communicator&)>& fn);

// A stream whose work is done when the call returns.
class InlineStream final : public Stream {
 public:
  void synchronize() override {}
};

}  // namespace assay::test
