// Did it get slower? Compares two sides of one or more runs each: what differs in their environments, what changed in
// each case, how sure that is, and what could not be compared.
#pragma once

#include "harness/core/error.h"
#include "harness/runs/run_set.h"
#include "reports/cost/match.h"
#include "reports/model/document.h"

namespace assay::report {

struct CompareOptions {
  double tolerance = 0.03;  // changes within it do not matter; a fraction of base's speed, within [0, 1)
  PriceSource prices = {};  // without prices, costs are left out
};

struct CompareCounts {
  int slower = 0;
  int faster = 0;
  int same = 0;
  int unknown = 0;
  int unknown_slow = 0;  // how many of these may be slower by more than the tolerance
  int broken = 0;        // cases that held in base and do not hold in head
  int left_out = 0;
  int hosts_failed = 0;  // of two acceptances: passed in base and failed in head
  int hosts_unsure = 0;  // passed in base and neither passed nor failed in head

  // failed: something is slower by more than the tolerance, or no longer holds. no_data: nothing was compared, a case
  // may be slower by more than the tolerance but is too noisy to say, or a host that passed was not judged again. ok
  // otherwise.
  ExitCode exit_code() const;
};

struct CompareResult {
  Document document;
  CompareCounts counts;
};

CompareResult compare(const RunSet& base, const RunSet& head, const CompareOptions& options);

}  // namespace assay::report
