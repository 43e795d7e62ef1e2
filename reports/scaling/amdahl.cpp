#include "reports/scaling/amdahl.h"

#include "reports/scaling/fit.h"

#include <algorithm>
#include <cmath>

namespace assay::report::scaling {

namespace {

bool more_ranks_are_slower(const std::vector<WorldPoint>& points) {
  constexpr double noise = 0.05;  // relative, where a time has no interval
  for (std::size_t j = 1; j < points.size(); ++j)
    for (std::size_t i = 0; i < j; ++i) {
      const auto error = [&](std::size_t k) { return 2 * relative_error(points[k].time).value_or(noise / 2); };
      if (std::log(points[j].time.value / points[i].time.value) > std::hypot(error(i), error(j))) return true;
    }
  return false;
}

}  // namespace

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
  result.applies = !more_ranks_are_slower(series.points);
  // ds = (b da - a db) / (a + b)^2
  if (const auto half = fit->half_width({b / (whole * whole), -a / (whole * whole)}))
    result.interval = Interval{std::max(0.0, result.serial - *half), std::min(1.0, result.serial + *half)};
  return result;
}

}  // namespace assay::report::scaling
