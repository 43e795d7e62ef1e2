#include "reports/compare/verdict.h"

namespace assay::report::comparison {

namespace {

Judgement judge_interval(const Change& change, double tolerance) {
  const Interval& ci = *change.ci95;
  const double low = 1 - tolerance, high = 1 + tolerance;
  if (ci.low >= low && ci.high <= high) return {Verdict::same, false, "the interval is within the tolerance"};

  const bool significant = change.q && *change.q <= significance;
  const bool within_run = change.noise == Noise::within_run;
  const bool beyond_slow = within_run ? ci.high < low : change.ratio < low;
  const bool beyond_fast = within_run ? ci.low > high : change.ratio > high;
  if (significant && beyond_slow) return {Verdict::slower, false, "significant, and by more than the tolerance"};
  if (significant && beyond_fast) return {Verdict::faster, false, "significant, and by more than the tolerance"};

  Judgement unknown{Verdict::unknown, ci.low < low, ""};
  if (!unknown.may_be_slower)
    unknown.reason = "not slower by more than the tolerance; too noisy to say whether it is faster";
  else if (within_run && (ci.high < low || ci.low > high))
    unknown.reason = "noise between runs may explain it: use three or more runs per side";
  else if (within_run)
    unknown.reason = "the interval extends beyond the tolerance: use three or more runs per side, or longer runs";
  else if (significant)
    unknown.reason = "it changed, but perhaps by less than the tolerance: use more runs per side";
  else
    unknown.reason = "the interval extends beyond the tolerance: use more runs per side";
  return unknown;
}

}  // namespace

Judgement judge(const Change& change, double tolerance) {
  if (change.noise == Noise::none) return {Verdict::same, false, "the same run on both sides"};
  if (!change.ci95)
    return {Verdict::unknown, true, "one run per side, and its samples give no interval: use several runs per side"};
  return judge_interval(change, tolerance);
}

}  // namespace assay::report::comparison
