// Outliers by robust z-scores, and by a test with a stated error; neither do the outliers themselves mask.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay {

struct Robust {
  double median = 0;
  double mad = 0;  // median absolute deviation from it

  // 0.6745 (x - median) / MAD; infinite if most values are equal and x differs from them.
  double score(double x) const;
};

// Median and deviation of a non-empty series.
Robust robust(std::span<const double> values);

// Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (ASQC Quality Press, 1993): |z| of 3.5 or more.
inline constexpr double outlier_score = 3.5;
// Differences nobody would act on: a value this close to the median is no outlier, however close the others are.
inline constexpr double outlier_share = 0.03;
// With fewer values too little is known about their spread.
inline constexpr int fewest_for_outliers = 8;

// Both the score and the distance from the median must be large.
bool is_outlier(double x, const Robust& others);

// Indices of outliers on either side, the most extreme first: at most `max_count`, and any at all among normal values
// with probability `error`. Generalised extreme studentised deviates (Rosner, "Percentage points
// for a generalized ESD many-outlier procedure", Technometrics 1983).
std::vector<std::size_t> extreme_deviates(std::span<const double> values, std::size_t max_count, double error);

}  // namespace assay
