// The audit of one machine: what is broken or set up badly on it, what its kernel logged in past days, and the facts
// that hosts of one kind should share. Read from files below a root, so that folders of files test all of it.
#pragma once

#include "harness/machine/audited.h"
#include "harness/machine/machine.h"

#include <vector>

namespace assay::audit {

struct Audit : AuditedMachine {
  Machine machine;
  std::vector<Finding> spoilers;  // of the machine now; the problems include them
};

// Only reads. Events older than `days` before now are left out.
Audit audit_machine(const Root& root, double now_unix_seconds, double days = 7);

}  // namespace assay::audit
