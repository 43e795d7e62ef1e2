#include "reports/summary/key_bars.h"

#include "harness/core/units.h"
#include "harness/runs/figures.h"
#include "harness/statistics/statistics.h"
#include "reports/bounds/bounds.h"
#include "reports/model/words.h"
#include "reports/summary/entry_samples.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace assay::report {

namespace {

// At most this many points, each the median of neighbouring samples: rates, where the figure is one.
std::vector<double> strip_of(const KeyFigure& figure) {
  constexpr std::size_t max_points = 100;
  std::vector<double> samples = samples_of(*figure.entry).values, points;
  std::erase_if(samples, [](double one) { return !(one > 0) || !std::isfinite(one); });
  if (figure.metric->better != Better::lower)
    for (double& one : samples) one = 1 / one;
  const std::size_t each = std::max<std::size_t>(1, (samples.size() + max_points - 1) / max_points);
  for (std::size_t from = 0; from < samples.size(); from += each)
    points.push_back(median(std::span(samples).subspan(from, std::min(each, samples.size() - from))));
  if (points.size() < 2) return {};
  const double highest = std::ranges::max(points);
  for (double& one : points) one /= highest;
  return points;
}

}  // namespace

Bars bars_of(const std::vector<KeyFigure>& figures, const std::vector<Beside>& besides, const std::string& id,
             const std::string& title) {
  Bars bars{id,
            title,
            "Bar: the figure; whiskers: its 95 % interval; dashed line: its peak, or what "
            "the bandwidth of memory allows",
            {},
            {}};
  bool referenced = false, published = false, usual = false, strips = false;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const KeyFigure& figure = figures[i];
    const Beside& others = besides[i];
    const Metric& metric = *figure.metric;
    const double value = *metric.value;
    if (!(value > 0) || !std::isfinite(value)) continue;
    const Interval range = metric.ci95.value_or(Interval{value, value});
    const BoundShare scale = bound_share_of(*figure.entry, metric);
    const double peak = scale.bound ? scale.bound->value : 0;
    std::vector<Estimate> shown{{value, range}, {peak}};
    if (!others.values.empty()) shown.push_back({others.values.back()});
    for (const PublishedFigure* one : others.published) shown.push_back({one->value.high});
    const double end = 1.02 * std::ranges::max(shown_values(shown, true));
    BarRow row{figure.title, figure_text(metric, value), {value / end}};
    row.link = figure.entry->anchor();
    if (metric.ci95) {
      row.range = Interval{range.low / end, range.high / end};
      row.text += " " + precision_text(std::max(range.high - value, value - range.low) / value);
    }
    if (scale.bound) {
      row.peak = peak / end;
      row.text += fmt::format(", {} of {}", format_percent(*scale.share), scale.of_memory ? "memory" : "peak");
      if (scale.usual) row.usual = Interval{scale.usual->share.low * peak / end, scale.usual->share.high * peak / end};
      usual = usual || row.usual;
    }
    if (!others.values.empty()) row.reference = Interval{others.values.front() / end, others.values.back() / end};
    for (const PublishedFigure* one : others.published)
      row.published.push_back({one->value.low / end, one->value.high / end});
    if (!scale.bound && others.values.empty() && others.published.empty()) {
      row.parts.clear();
      row.range.reset();
      row.strip = strip_of(figure);
      strips = true;
    }
    referenced = referenced || row.reference;
    published = published || !row.published.empty();
    bars.rows.push_back(std::move(row));
  }
  if (usual) bars.note += "; line below: the usual share of it";
  if (strips) bars.note += "; curve: where no peak is known, the samples over time, from 0 to the largest";
  if (referenced) bars.note += "; shade: from the lowest to the highest reference run of such a machine";
  if (published) bars.note += "; ticks at the edges: published by others";
  bars.note += ".";
  return bars;
}

}  // namespace assay::report
