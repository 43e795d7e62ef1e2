// The answer of `assay ab`, for people and for machines.
#pragma once

#include "harness/ab/ab.h"
#include "harness/json/fwd.h"
#include "reports/model/document.h"

#include <string>

namespace assay::report {

// What was asked of `assay ab`.
struct AbQuestion {
  std::string a, b;    // the commands
  std::string metric;  // empty: not known, as no output was read
  ab::Options options;
};

Document ab_document(const ab::Result& result, const ab::Options& options);
// {"schema": 1, "verdict": .., "ratio": .., "low": .., "high": .., "pairs": .., "commands": .., .., "cases": [..]}
Json ab_json(const ab::Result& result, const AbQuestion& question);
// Why cases are undecided, in a line; empty if none is.
std::string why_undecided(const ab::Result& result, const ab::Options& options);

}  // namespace assay::report
