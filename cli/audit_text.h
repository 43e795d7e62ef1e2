// An audit, and what distorts measurements, as text.
#pragma once

#include "harness/audit/audit.h"

#include <string>
#include <string_view>
#include <vector>

namespace assay::cli {

// Problems, faults first, then what the kernel logged, `when`.
std::string audit_text(const AuditedMachine& audit, std::string_view when = " in the last 7 days");
std::string spoilers_text(const std::vector<Finding>& findings);

}  // namespace assay::cli
