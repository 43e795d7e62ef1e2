#include "reports/scaling/efficiency.h"

namespace assay::report::scaling {

Estimate efficiency(Mode mode, const Estimate& base_time, int base_ranks, const Estimate& time, int ranks) {
  const Estimate faster = ratio(base_time, time);
  return mode == Mode::weak ? faster : scaled(faster, static_cast<double>(base_ranks) / ranks);
}

Estimate efficiency(const Series& series, std::size_t point) {
  if (point == 0) return {1, std::nullopt};
  const WorldPoint& base = series.points.front();
  return efficiency(series.mode, base.time, base.ranks, series.points[point].time, series.points[point].ranks);
}

}  // namespace assay::report::scaling
