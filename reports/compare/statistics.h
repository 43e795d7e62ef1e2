// How much a figure changed between two sides, how sure that is, and how small a change would have been seen.
#pragma once

#include "harness/record/metric.h"
#include "harness/statistics/statistics.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace assay::report::comparison {

// One run's figure of a case, as natural logarithms: a ratio of figures is then a difference.
struct Observation {
  double log = 0;
  std::optional<Interval> within = {};  // 95 %, from the samples of this run alone; absent: not known
};

enum class Noise {
  between_runs,  // measured between the runs of a side: what happens from run to run is in the interval
  within_run,    // one run a side: the interval knows the noise within a run, not that between runs
  unknown,       // one run a side, and its samples do not give an interval
  none,          // both sides are the same runs
};

// All in shares of speed: a ratio over 1 is faster, whichever way the metric counts.
struct Change {
  double ratio = 1;
  std::optional<Interval> ci95 = {};
  Noise noise = Noise::unknown;
  std::optional<double> p = {};           // of no change at all, two-sided
  std::optional<double> q = {};           // p, adjusted for the number of cases (false discovery rate)
  std::optional<double> freedom = {};     // degrees of freedom of the t distribution; absent: normal
  std::optional<double> detectable = {};  // the smallest change that 80 % of such comparisons would find: 0.02 is 2 %
};

// No machine repeats better than this: the standard deviation, from run to run, that is always reckoned with. It keeps
// three runs that happen to agree from proving anything.
inline constexpr double min_run_noise = 0.001;
// What one run a side is taken to differ from the next, as nobody measured it: a quiet machine's, and one's of which
// too few cases were compared to see it.
inline constexpr double quiet_run_noise = 0.010;
inline constexpr double assumed_run_noise = 0.0125;
// From so many cases on the scatter of their ratios shows how much runs differ.
inline constexpr std::size_t scatter_cases = 8;

// What the ratios of one-run cases say of the noise between runs.
struct RunNoise {
  double assumed = assumed_run_noise;  // standard deviation of the logarithm of one run's figure
  std::optional<double> scatter = {};  // standard deviation of a logarithm of a ratio; absent under scatter_cases
  double within = 0;                   // of that, what the samples of the median case explain
  double freedom = 0;                  // of scatter
};

// Standard error of the difference of two figures by their own samples alone; 0 where these say nothing.
double within_error(const Observation& base, const Observation& head);

// The scatter of logarithms of ratios about where most of them lie, and the median of `within_errors`. Half of the
// cases may have changed, or all of them alike, without adding to it: the length of the shortest half of the values
// over that of a normal distribution (Rousseeuw & Leroy, "Robust Regression and Outlier Detection", 1987, with their
// factor for small samples).
RunNoise run_noise(std::span<const double> log_ratios, std::span<const double> within_errors);

// The change from base to head, which each have at least one run.
// Several runs on both sides: Welch's t test of the logarithms of the runs' figures (Welch, Biometrika 1947), where a
// side's variance is never taken for less than what its runs' own samples show. Several on one side: Student's, the
// single run taken to be as noisy as the others. One a side: the interval is that of the samples (of the difference of
// two medians: Zou & Donner, Statistics in Medicine 2008); p reckons with noise between runs, too.
Change change_of(std::span<const Observation> base, std::span<const Observation> head, Better better,
                 const RunNoise& noise);

// Benjamini & Hochberg's step-up procedure (JRSS B 1995): q of every change that has a p.
void adjust(std::span<Change* const> changes);

}  // namespace assay::report::comparison
