// Changes in words: "+2.1 %", "-12.5 .. -7.9 %".
#pragma once

#include "reports/compare/statistics.h"

#include <string>

namespace assay::report::comparison {

// A ratio as a change, with the digits that its interval allows; "2.4 x" from 2 on.
std::string change_text(double ratio, const std::optional<Interval>& ci95);
// Both ends, with one more decimal; "–" if there is no interval.
std::string interval_text(const std::optional<Interval>& ci95);
// "± 2.4 %"; "–" if unknown.
std::string detectable_text(const std::optional<double>& detectable);
// "between runs", "within-run", ...: the noise that the interval covers.
std::string_view name_of(Noise noise);

}  // namespace assay::report::comparison
