// The figures that matter, as a section of a report.
#pragma once

#include "harness/runs/key_figures.h"
#include "reports/model/document.h"

#include <vector>

namespace assay::fitness {
struct CheckResult;  // harness/fitness/floors/check.h
}

namespace assay::report {

struct References;  // reports/references/references.h

// Whether the figure is amber: disturbed, or a floor's limit lies in its interval.
bool amber(const Record& record, const Metric& metric, const fitness::CheckResult* floors);

// Bars and a table per machine: interval, fraction of peak, what others have published, and a link to how each figure
// was measured.
std::vector<Section> key_figure_sections(const RunSet& runs, const References& references,
                                         const fitness::CheckResult* floors = nullptr);

}  // namespace assay::report
