// Diagnosis as a report of its own, and as a section of every report.
#pragma once

#include "harness/core/error.h"
#include "reports/cost/match.h"
#include "reports/diagnosis/diagnosis.h"
#include "reports/model/document.h"

namespace assay::report {

// A table of what fired, with what the cause costs at most where the machine has a price, and what was quiet or could
// not be judged and why.
std::vector<Section> diagnosis_sections(const std::vector<Diagnosis>& all, const PriceSource& prices);
Document diagnosis_document(const RunSet& runs, const std::vector<Diagnosis>& all, const PriceSource& prices);
// {"schema", "rules": [{"id", "state", "needs", "evidence", "ceiling", "usd_per_hour", "fix", "source"}]}.
Json diagnosis_json(const std::vector<Diagnosis>& all, const PriceSource& prices);
// failed: a rule is at or above `fail_on`, if given; no_data: no rule could be judged, or, with `fail_on`, a rule
// is too noisy to judge.
ExitCode exit_code_of(const std::vector<Diagnosis>& all, std::optional<RuleState> fail_on);

}  // namespace assay::report
