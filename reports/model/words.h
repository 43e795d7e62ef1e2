// Small phrases that all reports share.
#pragma once

#include "harness/core/text.h"

#include <string>
#include <vector>

namespace assay::report {

// "± 0.7 %", of a fraction.
std::string plus_minus(double fraction);
// "1, 2, 4".
std::string joined(const std::vector<int>& numbers);

}  // namespace assay::report
