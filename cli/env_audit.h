// `assay env --audit` of one machine.
#pragma once

#include "harness/audit/audit.h"

namespace assay::cli {

audit::Audit audit_now(const Root& root);
bool has_fault(const audit::Audit& audit);
// Problems, faults first, then what the kernel logged in past days.
void print_audit(const audit::Audit& audit);

}  // namespace assay::cli
