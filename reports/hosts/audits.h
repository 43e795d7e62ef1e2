// The audits of many hosts as a document, and what their differences may cost.
#pragma once

#include "harness/fitness/cluster/audits.h"
#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// Looks in runs on each of the hosts for what each difference may cost. Hosts in a tie have no effect.
void add_effects(std::vector<fitness::Drift>& drift, const RunSet& runs);

Document audit_document(const fitness::AuditedFleet& fleet);

}  // namespace assay::report
