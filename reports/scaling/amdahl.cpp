#include "reports/scaling/amdahl.h"

#include "reports/scaling/fit.h"

#include <algorithm>

namespace assay::report::scaling {

double Amdahl::at(int ranks) const { return time * (serial + (1 - serial) / ranks); }

std::optional<Amdahl> fit_amdahl(const Series& series) {
  if (series.mode != Mode::strong) return std::nullopt;
  std::vector<Observation> points;
  for (const WorldPoint& point : series.points)
    points.push_back({{1, 1.0 / point.ranks}, point.time.value, relative_error(point.time)});
  const auto fit = fit_terms(points, 2);
  if (!fit) return std::nullopt;
  const double a = fit->coefficients[0], b = fit->coefficients[1], whole = a + b;
  Amdahl result;
  result.serial = a / whole;
  result.time = whole;
  result.rms = fit->rms;
  result.residuals = fit->residuals;
  result.freedom = fit->freedom;
  // ds = (b da - a db) / (a + b)^2
  if (const auto half = fit->half_width({b / (whole * whole), -a / (whole * whole)}))
    result.interval = Interval{std::max(0.0, result.serial - *half), std::min(1.0, result.serial + *half)};
  return result;
}

}  // namespace assay::report::scaling
