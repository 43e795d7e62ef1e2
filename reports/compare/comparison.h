// All that a comparison found, before it becomes a document.
#pragma once

#include "reports/compare/compare.h"
#include "reports/compare/difference.h"
#include "reports/compare/pairing.h"
#include "reports/compare/statistics.h"

#include <vector>

namespace assay::report::comparison {

struct Compared {
  const Pair* pair = nullptr;
  Change change;
  Judgement judgement;  // set for headline pairs only
};

struct Comparison {
  const RunSet& base;
  const RunSet& head;
  Pairing pairing;
  EnvironmentDifference environment;
  std::vector<Compared> compared;  // in the order of pairing.pairs
  bool same_runs = false;          // both sides are the same runs
  CompareCounts counts;
};

// Pairs, tests and judges. Throws UsageError as pair_sides() does.
Comparison compare_sides(const RunSet& base, const RunSet& head, double tolerance);

Document comparison_document(const Comparison& comparison, const CompareOptions& options);

}  // namespace assay::report::comparison
