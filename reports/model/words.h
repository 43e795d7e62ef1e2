// Small phrases that all reports share.
#pragma once

#include "harness/core/text.h"

#include <string>

namespace assay::report {

// "± 0.7 %", of a fraction.
std::string plus_minus(double fraction);

}  // namespace assay::report
