#include "reports/summary/key_bars.h"

#include "harness/runs/figures.h"
#include "reports/model/words.h"

#include <algorithm>
#include <cmath>

namespace assay::report {

Bars bars_of(const std::vector<KeyFigure>& figures, const std::vector<Beside>& besides, const std::string& id,
             const std::string& title) {
  Bars bars{id, title, "Bar: the figure; whiskers: its 95 % interval; dashed line: the peak", {}, {}};
  bool referenced = false, published = false;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const KeyFigure& figure = figures[i];
    const Beside& others = besides[i];
    const Metric& metric = *figure.metric;
    const double value = *metric.value;
    if (!(value > 0) || !std::isfinite(value)) continue;
    const Interval range = metric.ci95.value_or(Interval{value, value});
    const bool peaked = metric.of_peak && *metric.of_peak > 0;
    const double peak = peaked ? value / *metric.of_peak : 0;
    double end = peaked ? 1.02 * std::max(peak, range.high) : std::max(1.05 * range.high, 2 * value);
    if (!others.values.empty()) end = std::max(end, 1.02 * others.values.back());
    for (const PublishedFigure* one : others.published) end = std::max(end, 1.02 * one->value.high);
    BarRow row{figure.title, figure_text(metric, value), {value / end}};
    row.link = figure.entry->anchor();
    if (metric.ci95) {
      row.range = Interval{range.low / end, range.high / end};
      row.text += " " + precision_text(std::max(range.high - value, value - range.low) / value);
    }
    if (peaked) row.peak = peak / end;
    if (!others.values.empty()) row.reference = Interval{others.values.front() / end, others.values.back() / end};
    for (const PublishedFigure* one : others.published)
      row.published.push_back({one->value.low / end, one->value.high / end});
    referenced = referenced || row.reference;
    published = published || !row.published.empty();
    bars.rows.push_back(std::move(row));
  }
  if (referenced) bars.note += "; shade: from the lowest to the highest reference run of such a machine";
  if (published) bars.note += "; ticks at the edges: published by others";
  bars.note += ".";
  return bars;
}

}  // namespace assay::report
