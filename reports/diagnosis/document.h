// Diagnosis as a report of its own, and as a section of every report.
#pragma once

#include "harness/core/error.h"
#include "reports/diagnosis/diagnosis.h"
#include "reports/model/document.h"

namespace assay::report {

// A table of what fired, and what was quiet or could not be judged and why.
std::vector<Section> diagnosis_sections(const std::vector<Diagnosis>& all);
Document diagnosis_document(const RunSet& runs, const std::vector<Diagnosis>& all);
// {"schema", "rules": [{"id", "state", "needs", "evidence", "ceiling", "fix", "source"}]}.
Json diagnosis_json(const std::vector<Diagnosis>& all);
// failed: a rule is at or above `fail_on`; no_data: none could be judged.
ExitCode exit_code_of(const std::vector<Diagnosis>& all, RuleState fail_on);

}  // namespace assay::report
