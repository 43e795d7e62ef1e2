// What an acceptance would do: stages, hosts and times.
#pragma once

#include "harness/fitness/accept/request.h"
#include "harness/plan/family.h"

#include <span>
#include <string>

namespace assay::accept {

// Begins with the floors that no case of the stages can be judged by, whatever it measures. `catalogue`: every family
// of this build. Throws UsageError if a plan cannot be expanded.
std::string schedule_text(const Request& request, std::span<const Family> catalogue);

}  // namespace assay::accept
