// Amdahl's serial fraction from a strong-scaling series.
#pragma once

#include "reports/scaling/series.h"

#include <optional>
#include <vector>

namespace assay::report::scaling {

// T(N) = T(1) (s + (1 - s) / N) (Amdahl, AFIPS 1967), fitted as a + b / N with a, b >= 0 by relative errors:
// s = a / (a + b). Whatever does not shrink with ranks, including exposed communication, counts as serial.
struct Amdahl {
  double serial = 0;                      // within [0, 1]
  std::optional<Interval> interval = {};  // 95 %, within [0, 1], by the delta method
  double time = 0;                        // T(1) of the fit, seconds; extrapolated if no single rank was measured
  double rms = 0;                         // root mean square of the relative residuals
  std::vector<double> residuals;          // ln(T / fit), one per point
  bool applies = true;                    // false: more ranks are slower than fewer, which no serial fraction explains
  int freedom = 0;                        // 0: two sizes determine the fit and nothing is left to judge it by

  double at(int ranks) const;  // seconds
};

// Absent for weak series.
std::optional<Amdahl> fit_amdahl(const Series& series);

}  // namespace assay::report::scaling
