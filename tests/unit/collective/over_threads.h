// Cases of the family collective over ranks that are threads.
#pragma once

#include "suites/collective/collective.h"
#include "tests/support/case_runner.h"
#include "tests/support/thread_communicator.h"

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace assay::collective {

// Rank 0's outcome; all ranks have the same checks.
inline test::Outcome over_threads(int ranks, const std::map<std::string, ParamValue>& changes,
                                  const std::set<Fault>& faults = {}) {
  test::Outcome first;
  std::mutex mutex;
  test::run_ranks(ranks, [&](Communicator& comm) {
    test::Outcome own = test::run_case(collective_family(), changes, comm, faults);
    const std::lock_guard lock(mutex);
    if (comm.rank() == 0) first = std::move(own);
  });
  return first;
}

}  // namespace assay::collective
