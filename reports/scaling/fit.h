// Fits sums of one to three terms with nonnegative coefficients to positive figures by relative error.
#pragma once

#include "reports/scaling/estimate.h"

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace assay::report::scaling {

inline constexpr std::size_t max_terms = 3;
inline constexpr double akaike_margin = 10;  // a model that is worse by this has no support (Burnham & Anderson 2002)
inline constexpr double max_error_factor = 10;  // a figure that may be off by this factor is not determined
using Terms = std::array<double, max_terms>;    // factors of the coefficients, or the coefficients

struct Observation {
  Terms x{};                                  // at least 0
  double y = 0;                               // above 0
  std::optional<double> relative_error = {};  // standard error of ln(y)
};

// y = sum of c_j x_j with c_j >= 0 that minimises the sum of ln(y_i / f_i)^2: an error of 10 % weighs the same in small
// and large figures.
class TermFit {
 public:
  Terms coefficients{};
  std::vector<double> residuals;  // ln(y / f), in the order of the observations
  double rms = 0;                 // root mean square of the residuals, a relative error
  int freedom = 0;                // observations minus terms

  double at(const Terms& x) const;
  // Half the width of the 95 % interval of the linear function sum of g_j c_j: the wider of that from the residuals
  // (Student's t on `freedom`) and that from the observations' own errors, propagated through the least-squares
  // solution. Absent if neither is known.
  std::optional<double> half_width(const Terms& g) const;
  // The same for ln(sum of x_j c_j); absent also if that sum is 0.
  std::optional<double> log_half_width(const Terms& x) const;

 private:
  friend std::optional<TermFit> fit_terms(std::span<const Observation>, std::size_t);
  using Matrix = std::array<Terms, max_terms>;
  std::size_t terms_ = 0;
  Matrix inverse_{};               // (J'J)^-1 of the relative residuals
  std::optional<Matrix> carried_;  // (J'J)^-1 J' D J (J'J)^-1 with the observations' variances D
};

// Absent with fewer observations than terms, or if the observations cannot distinguish the terms.
std::optional<TermFit> fit_terms(std::span<const Observation> observations, std::size_t terms);

}  // namespace assay::report::scaling
