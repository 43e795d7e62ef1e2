// A check over all ranks, from what each found in its own buffers.
#pragma once

#include "harness/plan/case.h"
#include "suites/collective/answer.h"

namespace assay::collective {

// Passes if no rank found a wrong element; the same result on every rank. Its culprits are those ranks; rank 0 gets the
// details. Every rank must call it.
void add_check(Checks& checks, Communicator& comm, const char* name, const Wrong& wrong);

}  // namespace assay::collective
