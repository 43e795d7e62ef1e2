// The audit of one machine, and what spoils measurements on it, as text.
#pragma once

#include "harness/audit/audit.h"

namespace assay::cli {

audit::Audit audit_now(const Root& root);
// Problems, faults first, then what the kernel logged in past days.
void print_audit(const AuditedMachine& audit);
void print_spoilers(const std::vector<Finding>& findings);

}  // namespace assay::cli
