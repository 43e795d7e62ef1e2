// An audit, and what distorts measurements, as text.
#pragma once

#include "harness/audit/audit.h"

#include <string>
#include <vector>

namespace assay::cli {

// Problems, faults first, then what the kernel logged in past days.
std::string audit_text(const AuditedMachine& audit);
std::string spoilers_text(const std::vector<Finding>& findings);

}  // namespace assay::cli
