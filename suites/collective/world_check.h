// A check over all ranks, from what each found in its own buffers.
#pragma once

#include "harness/plan/case.h"
#include "suites/collective/answer.h"

namespace assay::collective {

// Passes where no rank found a wrong element; the same on every rank. Its culprits, by rank, on rank 0. Every rank
// calls it.
void add_check(Checks& checks, Communicator& comm, const char* name, const Wrong& wrong);

}  // namespace assay::collective
