// Axes of days.
#pragma once

#include "harness/core/utc.h"

#include <cmath>
#include <ctime>
#include <string>

namespace assay::report {

// The unit of an axis whose values are days since 1970-01-01, shown as dates.
inline constexpr const char* date_unit = "date";

// "2026-01-31".
inline std::string axis_date(double day) {
  constexpr double seconds_per_day = 86400;
  return utc_text(static_cast<std::time_t>(std::floor(day) * seconds_per_day)).substr(0, 10);
}

}  // namespace assay::report
