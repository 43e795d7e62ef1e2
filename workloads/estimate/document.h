// The answer of `assay estimate`, as JSON and as text.
#pragma once

#include "harness/core/error.h"
#include "workloads/estimate/memory_estimate.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::estimate {

// The estimator must outlive it.
struct Answer {
  explicit Answer(const MemoryEstimator& estimator);

  const MemoryEstimator& estimator;
  MemoryEstimate made;
  std::optional<bool> fits;         // as MemoryEstimator::fits()
  std::vector<Alternative> others;  // that would fit, if it does not

  // failed: it does not fit; no_data: the sheet of the hardware does not give its memory.
  ExitCode code() const;
};

Json to_json(const Answer& answer);
std::string to_text(const Answer& answer);

}  // namespace assay::estimate
