// Times at world sizes that were not measured, as ranges: the one projection of reports and `assay project`.
#pragma once

#include "reports/scaling/fit.h"
#include "reports/scaling/series.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::report::scaling {

inline constexpr std::size_t min_projected_worlds = 3;
// Beyond this many times the largest measured world a projection rests on its model more than on what was measured.
inline constexpr int extrapolation_factor = 8;

struct Projected {
  int ranks = 1;
  // Seconds, with an interval. Absent if the interval would exceed a factor of ten either way.
  std::optional<Estimate> time;
  Estimate efficiency;          // against the series' smallest world size
  bool measured = false;        // then `time` is the measured one
  bool extrapolated = false;    // beyond extrapolation_factor
  std::string assumption = {};  // the main source of the interval's longer arm; empty if measured
};

struct StepModel;

struct Projection {
  std::string model;  // text for people: "compute / N + serial"
  double rms = 0;     // relative, on all sizes
  int held_out = 1;   // ranks of the largest size
  double held_out_time = 0;
  double held_out_predicted = 0;  // from the smaller sizes alone
  double error = 0;               // predicted / measured - 1
  std::vector<Projected> sizes;   // as asked for
  const StepModel* chosen = nullptr;
  Terms coefficients{};  // seconds of its terms

  double at(double ranks) const;  // seconds, by the fit
};

// Absent with fewer than min_projected_worlds world sizes, or if no model fits.
//
// Chooses the model of step_models() with the lowest residual variance; of equal models, the one with fewer terms. The
// range reaches, on logarithms, over all models that the measured
// sizes do not refute, each with its own 95 % interval at that size. The error at the largest size, when only the
// smaller ones are fitted, is added in quadrature; it grows in proportion to the ranks from the second largest size on.
// No efficiency, and no end of its range, is above 100 %, or above the best one that the series measured.
std::optional<Projection> project(const Series& series, std::span<const int> ranks);

}  // namespace assay::report::scaling
