// Things that a reader must not miss: failures, skips with their reasons, records that could not be read.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::report {

// "What failed": cases that failed a check or broke, with reason and place.
std::vector<Section> attention_sections(const RunSet& runs);
// "Skipped": by reason.
std::vector<Section> skipped_sections(const RunSet& runs);
// "Not read": lines that are not records, counted and listed.
std::vector<Section> unreadable_sections(const RunSet& runs);

}  // namespace assay::report
