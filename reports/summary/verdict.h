// The first lines of a report: which machine, and whether everything passed.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <string>

namespace assay::report {

struct RunVerdict {
  std::string headline;     // "AMD Zen 4, 2 cores, 24 GiB, no GPU · plan quick, 38 cases in 2 min 21 s"
  std::string line;         // "held: 36 · failed: 1 · skipped: 2"
  Tone tone = Tone::plain;  // bad if a case failed or broke
};

RunVerdict verdict_of(const RunSet& runs);

}  // namespace assay::report
