// `assay bench`: the same cases as `assay run`, driven by Google Benchmark on one rank.
//
// Google Benchmark asks for N iterations until they last long enough; one iteration is one repetition of the case.
// The sampler measures them under the case's protocol (rotation, flush, batching), and each iteration is given the
// time of the sample that it was part of; the count takes the place of the stop rule. Records and telemetry belong to
// `assay run` alone.
#pragma once

#include "harness/core/error.h"
#include "harness/plan/plan.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay {

struct BenchRequest {
  std::vector<std::string> flags;                   // Google Benchmark's own
  std::vector<PlannedCase> cases;                   // of one rank; each becomes KEY/manual_time
  std::function<std::unique_ptr<Device>()> device;  // called before the first case; not to list the cases
  std::filesystem::path cache_dir;
};

// Registers the cases, hands the flags to Google Benchmark and runs what they select.
// Returns failed when a check did not hold, broken when a case broke. Throws UsageError on a flag that Google
// Benchmark does not know, a filter that is no expression or selects nothing, and an output file it cannot write.
// To be called once a process, since Google Benchmark's registry and flags are global.
ExitCode run_benchmarks(const BenchRequest& request);

}  // namespace assay
