// The whole report of any number of runs: which sections, in which order.
#pragma once

#include "reports/cost/cost.h"
#include "reports/data/run_set.h"
#include "reports/model/document.h"

namespace assay::report {

struct PageOptions {
  PriceSource prices;       // load_prices(); without any there are no costs
  bool nccl_table = false;  // collectives in nccl-tests' form, in the terminal too
};

// The verdict and the figures that matter; what did not hold; environment; suites; workloads; cost; roofline; samples;
// what was skipped and why; how each figure was measured. Parts without anything to say are left out. Every renderer
// draws this one document; terminals leave its appendices out.
Document whole_report(const RunSet& runs, const PageOptions& options);

}  // namespace assay::report
