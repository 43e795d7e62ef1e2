// Who stands apart from the others: robust z-scores, which the outliers themselves cannot hide.
#pragma once

#include <span>

namespace assay {

struct Robust {
  double median = 0;
  double mad = 0;  // median of the absolute deviations from it

  // 0.6745 (x - median) / MAD; infinite where most values are equal and x is another.
  double score(double x) const;
};

// Of a non-empty series.
Robust robust(std::span<const double> values);

// Iglewicz and Hoaglin, "How to Detect and Handle Outliers" (ASQC Quality Press, 1993): |z| of 3.5 or more.
inline constexpr double outlier_score = 3.5;
// And no outlier that nobody would act on: values closer than this to the median are none, however alike the others.
inline constexpr double outlier_share = 0.03;
// Fewer values than this tell too little about how values spread.
inline constexpr int fewest_for_outliers = 8;

// By the score and by the distance from the median, both.
bool is_outlier(double x, const Robust& others);

}  // namespace assay
