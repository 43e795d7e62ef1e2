#include "reports/summary/key_bars.h"

#include "reports/data/figures.h"
#include "reports/data/words.h"

#include <algorithm>
#include <cmath>

namespace assay::report {

Bars bars_of(const std::vector<KeyFigure>& figures, const std::string& id, const std::string& title) {
  Bars bars{id, title, "Bar: the figure; whiskers: its 95 % interval; dashed line: the peak.", {}, {}};
  for (const KeyFigure& figure : figures) {
    const Metric& metric = *figure.metric;
    const double value = *metric.value;
    if (!(value > 0) || !std::isfinite(value)) continue;
    const Interval range = metric.ci95.value_or(Interval{value, value});
    const bool peaked = metric.of_peak && *metric.of_peak > 0;
    const double peak = peaked ? value / *metric.of_peak : 0;
    const double end = peaked ? 1.02 * std::max(peak, range.high) : std::max(1.05 * range.high, 2 * value);
    BarRow row{figure.title, figure_text(metric, value), {value / end}};
    row.link = figure.entry->anchor();
    if (metric.ci95) {
      row.range = Interval{range.low / end, range.high / end};
      row.text += " " + plus_minus(std::max(range.high - value, value - range.low) / value);
    }
    if (peaked) row.peak = peak / end;
    bars.rows.push_back(std::move(row));
  }
  return bars;
}

}  // namespace assay::report
