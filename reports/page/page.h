// The whole report of any number of runs: its sections and their order.
#pragma once

#include "harness/fitness/floors/check.h"
#include "harness/runs/run_set.h"
#include "reports/cost/cost.h"
#include "reports/model/document.h"
#include "reports/references/references.h"

#include <optional>
#include <string>

namespace assay::report {

struct PageOptions {
  PriceSource prices;                            // from load_prices(); without prices there are no costs
  References references = {};                    // from shipped_references()
  const fitness::CheckResult* floors = nullptr;  // the floors that the user demands of these runs
  bool nccl_table = false;                       // shows collectives in nccl-tests' form in the terminal too
  std::optional<double> items = {};              // tokens or images that a ranking of machines gives the bill for
  std::string only = {};                         // the id of the only section; empty: all
};

// The verdict, the four answers and the figures that matter; what failed; environment; suites; workloads; cost;
// roofline; samples; what was skipped and why; how each figure was measured. Empty parts are left out. All renderers
// draw this document; terminals omit its appendices. Throws UsageError if `only` is no section of it.
Document whole_report(const RunSet& runs, const PageOptions& options);

// The end of a run, at most 40 lines of 100 columns: the answers, what failed, the figures that matter beside their
// scales, and what to change. What it cuts is counted, and all of it is on the page.
Document one_screen(const Document& whole);

}  // namespace assay::report
