// Which records of two sides may be compared: equal identity, protocol, conditions and choices, and a figure in the
// same unit on both. All others are named with the reason.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/compare/statistics.h"

#include <string>
#include <vector>

namespace assay::report::comparison {

// One metric of one case, as measured by each side's runs.
struct Pair {
  const Entry* base = nullptr;  // the first entry of each side: what the case is, and where it was recorded
  const Entry* head = nullptr;
  const Metric* metric = nullptr;  // the metric of `base`
  bool headline = true;            // else it is only in the table of every figure
  std::string machine;             // the kind that this pair is of, if a side has several
  std::vector<Observation> base_runs;
  std::vector<Observation> head_runs;
  std::vector<const Entry*> base_entries;
  std::vector<const Entry*> head_entries;
};

// Records that are on neither side of a pair.
struct LeftOut {
  const Entry* entry = nullptr;  // one of them
  std::string side;              // "base", "head" or "both"
  std::string reason;
  std::string machine;  // as of a pair
};

// A case that held in base and does not hold in head.
struct Broken {
  const Entry* entry = nullptr;  // head's entry, or base's if head only has the failure of the whole test
  std::string text;
  std::string machine;  // as of a pair
};

struct Pairing {
  std::vector<Pair> pairs;  // in the order of base's records; a case's headline first
  std::vector<LeftOut> left_out;
  std::vector<Broken> broken;
};

// Points into both sets, which must outlive it. Hosts join the identity only where every run of both sides ran with
// --each-host; else several hosts of one run are averaged, and different kinds of machines are never samples of one
// side: a single kind is compared with each of the other side, several with their own. Throws UsageError if several do
// not pair.
Pairing pair_sides(const RunSet& base, const RunSet& head);

}  // namespace assay::report::comparison
