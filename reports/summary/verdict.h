// The first lines of a report: which machine, and whether everything passed.
#pragma once

#include "harness/runs/run_set.h"
#include "reports/model/document.h"

#include <cstddef>
#include <string>

namespace assay::report {

struct RunVerdict {
  std::string headline;     // "AMD Zen 4, 2 cores, 24 GiB, no GPU · plan quick, 38 cases in 2 min 21 s"
  std::string line;         // "held: 36 · failed: 1 · skipped: 2"
  Tone tone = Tone::plain;  // bad if a case failed or broke
};

RunVerdict verdict_of(const RunSet& runs);

// Where a run was measured, in words, from its run.json; absent members are skipped.

// "AMD Zen 4, 2 cores, 24 GB, no GPU · plan quick, 38 cases in 2 min 21 s · 1 finding (assay env)".
std::string machine_line(const RunSet& runs, std::size_t run_index);

}  // namespace assay::report
