// The meaning of a change, given the tolerance.
#pragma once

#include "harness/core/words.h"
#include "reports/compare/statistics.h"

#include <array>
#include <string>
#include <string_view>

namespace assay::report::comparison {

enum class Verdict { slower, faster, same, unknown };
constexpr auto words(Verdict) { return std::to_array<std::string_view>({"slower", "faster", "same", "cannot say"}); }
using assay::name_of;

// q up to this counts as a change.
inline constexpr double significance = 0.05;

struct Judgement {
  Verdict verdict = Verdict::unknown;
  bool may_be_slower = false;  // if `unknown`: by more than the tolerance
  std::string reason;          // in words, including what would help
};

// same: the whole interval is within 1 +- tolerance. slower, faster: significant and by more than the tolerance; with
// one run per side the whole interval must be beyond it. Otherwise unknown.
Judgement judge(const Change& change, double tolerance);

}  // namespace assay::report::comparison
