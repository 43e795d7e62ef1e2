// Changes in words: "+2.1 %", "-12.5 .. -7.9 %".
#pragma once

#include "harness/core/words.h"
#include "reports/compare/statistics.h"

#include <array>
#include <string>

namespace assay::report::comparison {

// A ratio as a change, with the digits that its interval allows; "2.4 x" from 2 on.
std::string change_text(double ratio, const std::optional<Interval>& ci95);
// Both ends, with one more decimal; "–" if there is no interval.
std::string interval_text(const std::optional<Interval>& ci95);
// "± 2.4 %"; "–" if unknown.
std::string detectable_text(const std::optional<double>& detectable);
// "between runs", "within-run", ...: the noise that the interval covers.
constexpr auto words(Noise) {
  return std::to_array<std::string_view>({"between runs", "within-run", "not known", "the same run"});
}
using assay::name_of;

}  // namespace assay::report::comparison
