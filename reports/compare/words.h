// Changes as people read them: "+2.1 %", "-12.5 .. -7.9 %".
#pragma once

#include "reports/compare/statistics.h"

#include <string>

namespace assay::report::comparison {

// A ratio of speeds as a change, with the digits that its interval allows; "2.4 x" from twice on.
std::string change_text(double ratio, const std::optional<Interval>& ci95);
// Both ends with one digit more, where that is after the point; "–" when there is none.
std::string interval_text(const std::optional<Interval>& ci95);
// "± 2.4 %"; "–" when it is not known.
std::string detectable_text(const std::optional<double>& detectable);
// "between runs", "within-run", ...: what the interval knows of.
std::string_view name_of(Noise noise);

}  // namespace assay::report::comparison
