// `assay bench`: the same cases as `assay run`, driven by Google Benchmark on one rank.
//
// Google Benchmark asks for more and more iterations until they take long enough; one iteration is one repetition of
// the case. The sampler measures them under the case's protocol (rotation, flush, batching), with the number of
// iterations instead of the stop rule, and each iteration is reported with the time of its sample. Only `assay run`
// makes records and telemetry.
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
  std::vector<PlannedCase> cases;                   // planned for one rank; each becomes KEY/manual_time
  std::function<std::unique_ptr<Device>()> device;  // called before the first case, but not to list cases
  std::filesystem::path cache_dir;
};

// Registers the cases, hands the flags to Google Benchmark and runs what they select.
// Returns `failed` if a check did not pass, `broken` if a case broke. Throws UsageError on a flag that Google Benchmark
// does not know, a filter that is invalid or selects nothing, and an output file that it cannot write. Call it once per
// process, since Google Benchmark's registry and flags are global.
ExitCode run_benchmarks(const BenchRequest& request);

}  // namespace assay
