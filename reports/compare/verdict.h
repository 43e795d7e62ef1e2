// What a change means, given the tolerance.
#pragma once

#include "reports/compare/statistics.h"

#include <string>
#include <string_view>

namespace assay::report::comparison {

enum class Verdict { slower, faster, same, unknown };
// "slower", "faster", "same", "cannot say".
std::string_view name_of(Verdict verdict);

// q at or under this counts as a change.
inline constexpr double significance = 0.05;

struct Judgement {
  Verdict verdict = Verdict::unknown;
  bool may_be_slower = false;  // of `unknown`: by more than the tolerance
  std::string reason;          // in words, what would help included
};

// same: the interval lies wholly within 1 +- tolerance. slower, faster: significant, and by more than the tolerance;
// with one run a side the whole interval must lie beyond it. Else it cannot be said.
Judgement judge(const Change& change, double tolerance);

}  // namespace assay::report::comparison
