// Predicts the next world sizes: fitted on all sizes but the largest, tested on that.
#pragma once

#include "reports/scaling/fit.h"
#include "reports/scaling/series.h"

#include <optional>
#include <string>
#include <vector>

namespace assay::report::scaling {

inline constexpr std::size_t min_worlds = 4;

struct Predicted {
  int ranks = 1;
  Estimate time;        // seconds
  Estimate efficiency;  // against the series' smallest world size
};

struct Prediction {
  std::string model;                   // text for people: "compute / N + serial"
  int held_out = 1;                    // ranks of the largest size, which is not in the fit
  double held_out_time = 0;            // measured, seconds
  Estimate held_out_predicted;         // predicted by the fit; its interval excludes the hold-out error
  double error = 0;                    // predicted / measured - 1 on the largest size
  double rms = 0;                      // relative, on the sizes that were fitted
  std::vector<Predicted> next;         // 2 and 4 times the largest
  std::vector<int> undetermined = {};  // sizes whose interval is more than a factor of ten either way

  double at(double ranks) const;  // seconds, by the fit

  Mode mode = Mode::strong;
  std::size_t candidate = 0;  // index among the mode's models
  Terms coefficients{};       // seconds of its terms
};

// Absent with fewer than min_worlds world sizes.
//
// Chooses the model of step_models() with the lowest residual variance on the fitted sizes; of equal models, the one
// with fewer terms. Coefficients are >= 0.
//
// The interval, on logarithms, combines in quadrature the fit's own (extrapolated to N, see TermFit::half_width) and
// the hold-out error, assumed to grow in proportion to the ranks from the largest fitted size on, as the fastest term
// that might be missing would. It is then widened to contain the predictions of all models not refuted by the fitted
// sizes.
std::optional<Prediction> predict(const Series& series);

}  // namespace assay::report::scaling
