// How much a figure changed between two sides, how sure that is, and how small a change would have been detected.
#pragma once

#include "harness/record/metric.h"
#include "harness/statistics/direction.h"
#include "harness/statistics/statistics.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::report::comparison {

// One run's figure of a case as natural logarithms, so that a ratio of figures is a difference.
struct Observation {
  double log = 0;
  std::optional<Interval> within = {};  // 95 %, from the samples of this run only; absent if unknown
};

enum class Noise {
  between_runs,  // measured between the runs of a side: the interval includes it
  within_run,    // one run per side: the interval covers noise within a run, not between runs
  unknown,       // one run per side, and its samples give no interval
  none,          // both sides are the same runs
};

// A change as a ratio of speeds: above 1 is faster, whichever way the metric counts.
struct Change {
  double ratio = 1;
  std::optional<Interval> ci95 = {};
  Noise noise = Noise::unknown;
  std::optional<double> p = {};           // two-sided probability under no change
  std::optional<double> q = {};           // p, adjusted for the number of cases (false discovery rate)
  std::optional<double> freedom = {};     // degrees of the t distribution; absent for the normal distribution
  std::optional<double> detectable = {};  // smallest change that 80 % of such comparisons find: 0.02 is 2 %
};

// The minimum standard deviation assumed between runs: no machine repeats better. It keeps three runs that happen to
// agree from proving anything.
inline constexpr double min_run_noise = 0.001;
// The standard deviation between runs assumed with one run per side, where it is not measured: on a quiet machine, and
// if too few cases were compared to see it.
inline constexpr double quiet_run_noise = 0.010;
inline constexpr double assumed_run_noise = 0.0125;
// From this many cases on, the scatter of their ratios shows how much runs differ.
inline constexpr std::size_t scatter_cases = 8;

// The noise between runs, estimated from the ratios of cases with one run per side.
struct RunNoise {
  double assumed = assumed_run_noise;  // standard deviation of the logarithm of one run's figure
  std::optional<double> scatter = {};  // standard deviation of the logarithm of a ratio; absent below scatter_cases
  double within = 0;                   // the part of it that the samples of the median case explain
  double freedom = 0;                  // degrees of freedom of `scatter`
};

// Standard error of the difference of two figures from their own samples only; 0 if unknown.
double within_error(const Observation& base, const Observation& head);

// The scatter of the logarithms of ratios around their bulk, and the median of `within_errors`. Robust: up to half of
// the cases may have changed, or all by the same factor, without adding to it. Computed as the length of the shortest
// half of the values over that of a normal distribution (Rousseeuw & Leroy, "Robust Regression and Outlier Detection",
// 1987, with their factor for small samples).
RunNoise run_noise(std::span<const double> log_ratios, std::span<const double> within_errors);

// The change from base to head, each with at least one run.
// Several runs on both sides: Welch's t test of the logarithms of the runs' figures (Welch, Biometrika 1947), with a
// side's variance no less than what its runs' own samples show. Several on one side only: Student's t test, assuming
// that the single run is as noisy as the others. One per side: the interval comes from the samples (difference of two
// medians: Zou & Donner, Statistics in Medicine 2008); p accounts for noise between runs too.
Change change_of(std::span<const Observation> base, std::span<const Observation> head, Better better,
                 const RunNoise& noise);

// Sets q of every change that has a p: Benjamini & Hochberg's step-up procedure (JRSS B 1995).
void adjust(std::span<Change* const> changes);

// The meaning of a change, given the tolerance.
inline constexpr std::string_view cannot_say = "cannot say";

// q up to this counts as a change.
inline constexpr double significance = 0.05;

struct Judgement {
  Direction verdict = Direction::unknown;
  bool may_be_slower = false;  // if `unknown`: by more than the tolerance
  std::string reason;          // in words, including what would help
};

// same: the whole interval is within 1 +- tolerance. slower, faster: significant and by more than the tolerance; with
// one run per side the whole interval must be beyond it. Otherwise unknown.
Judgement judge(const Change& change, double tolerance);

}  // namespace assay::report::comparison
