// The audit of one machine, and what spoils measurements on it, as text.
#pragma once

#include "harness/audit/audit.h"
#include "harness/core/error.h"

#include <string>
#include <string_view>

namespace assay::cli {

audit::Audit audit_now(const Root& root);
// Problems, faults first, then what the kernel logged, `when`.
void print_audit(const AuditedMachine& audit, std::string_view when = " in the last 7 days");
// Prints the audit of a kernel's log, "-": stdin. Throws Error (no_data) if no line of it is a message of the kernel,
// and UsageError as audit_log() does.
ExitCode audit_log_file(const std::string& file, bool json);
void print_spoilers(const std::vector<Finding>& findings);

}  // namespace assay::cli
