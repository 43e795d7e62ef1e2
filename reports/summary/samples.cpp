#include "reports/summary/sections.h"

#include "harness/core/units.h"
#include "harness/runs/groups.h"
#include "harness/runs/key_figures.h"
#include "reports/model/cells.h"
#include "reports/summary/entry_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

namespace {

constexpr std::size_t max_pictured = 12;  // cases; each takes about 15 kB of a page that may have 1 MB
constexpr std::size_t max_points = 200;   // of a timeline
constexpr std::size_t max_bins = 24;      // of a distribution

// Bin width 2 IQR / cbrt(n) (Freedman & Diaconis 1981), with 1 to `max_bins` bins.
Figure distribution(const EntrySamples& samples, const std::string& id, const std::string& title,
                    const std::string& unit) {
  const double low = *std::ranges::min_element(samples.values);
  const double high = *std::ranges::max_element(samples.values);
  const double spread = quantile(samples.values, 0.75) - quantile(samples.values, 0.25);
  const double width = 2 * spread / std::cbrt(static_cast<double>(samples.values.size()));
  std::size_t bins = 1;
  if (high > low)
    bins = width > 0 ? static_cast<std::size_t>(std::clamp(std::ceil((high - low) / width), 1.0, double{max_bins}))
                     : max_bins;
  Figure figure{id, title + ": distribution", "", {"sample", "", false}, {"samples", "1", false}, {}};
  Curve curve{"samples", Mark::bars, {}};
  const double step = (high - low) / static_cast<double>(bins);
  for (std::size_t i = 0; i < bins; ++i) {
    const double middle = low + (static_cast<double>(i) + 0.5) * step;
    figure.x.categories.push_back(format_quantity(middle, unit, step > 0 ? std::optional(step) : std::nullopt));
    curve.points.push_back({static_cast<double>(i), 0});
  }
  for (const double value : samples.values) {
    const double bin = step > 0 ? std::floor((value - low) / step) : 0;
    curve.points[std::min(bins - 1, static_cast<std::size_t>(std::max(0.0, bin)))].y += 1;
  }
  figure.alt = fmt::format("{} samples of {} from {} to {}, median {}.", samples.values.size(), title,
                           format_quantity(low, unit), format_quantity(high, unit),
                           format_quantity(median(samples.values), unit));
  figure.curves.push_back(std::move(curve));
  return figure;
}

// Thins a series to `max_points`: keeps the min and max of each stretch, so that no spike is lost.
void thin(std::vector<Point>& points) {
  if (points.size() <= max_points) return;
  std::vector<Point> kept;
  const std::size_t stretches = max_points / 2;
  for (std::size_t s = 0; s < stretches; ++s) {
    const auto from = points.begin() + static_cast<std::ptrdiff_t>(s * points.size() / stretches);
    const auto to = points.begin() + static_cast<std::ptrdiff_t>((s + 1) * points.size() / stretches);
    auto [low, high] = std::minmax_element(from, to, [](const Point& a, const Point& b) { return a.y < b.y; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  points = std::move(kept);
}

// A sensor's readings relative to their median; absent with fewer than two.
std::optional<Curve> sensor_curve(const Record& record, const char* name, std::string& said) {
  const auto found = record.telemetry.find(name);
  if (found == record.telemetry.end()) return std::nullopt;
  const Series& series = found->second;
  std::vector<double> values;
  Curve curve{name, Mark::line, {}};
  for (std::size_t i = 0; i < std::min(series.at.size(), series.values.size()); ++i) {
    if (!series.values[i] || !std::isfinite(*series.values[i]) || !std::isfinite(series.at[i])) continue;
    values.push_back(*series.values[i]);
    curve.points.push_back({series.at[i], *series.values[i]});
  }
  if (values.size() < 2 || median(values) == 0) return std::nullopt;
  const double middle = median(values);
  for (Point& point : curve.points) point.y /= middle;
  said += fmt::format("; {} {}", name, format_quantity(middle, series.unit));
  thin(curve.points);
  return curve;
}

// Samples, clock and power over the seconds since the case began, each relative to its median.
std::optional<Figure> time_line(const Entry& entry, const EntrySamples& samples, const std::string& id,
                                const std::string& title) {
  const double middle = median(samples.values);
  if (samples.at.size() < 2 || middle == 0) return std::nullopt;
  Figure figure{id, title + ": timeline", "", {"since the case began", "s", false}, {"relative to median", "1", false},
                {}};
  Curve curve{"sample", Mark::line_and_points, {}};
  for (std::size_t i = 0; i < samples.at.size(); ++i)
    curve.points.push_back({samples.at[i], samples.values[i] / middle});
  std::ranges::stable_sort(curve.points, {}, &Point::x);
  thin(curve.points);
  figure.curves.push_back(std::move(curve));
  std::string said = "sample " + format_quantity(middle, entry.record->samples.unit);
  for (const char* sensor : {"clock", "gpu_clock", "power", "gpu_power"})
    if (auto more = sensor_curve(*entry.record, sensor, said)) figure.curves.push_back(std::move(*more));
  figure.alt =
      fmt::format("{} over time, each curve relative to its median: {}; samples from {} to {} of their median.", title,
                  said, format_percent(*std::ranges::min_element(samples.values) / middle),
                  format_percent(*std::ranges::max_element(samples.values) / middle));
  return figure;
}

}  // namespace

std::vector<Section> sample_sections(const RunSet& runs) {
  Section section{"samples", "Samples", {}, false};
  Table table{"samples",
              "",
              {{"case"},
               right("median"),
               right("p5", "5 %"),
               right("p95", "95 %"),
               right("count", "samples"),
               right("disturbed")}};
  const std::vector<MachineRuns>& machines = by_machine(runs);
  std::set<const Entry*> pictured;               // one entry may have several figures
  std::vector<std::pair<Cell, Cell>> throttled;  // one per row: how many, and the median of the others
  for (const MachineRuns& machine : machines) {
    for (const KeyFigure& figure : key_figures(machine)) {
      const Entry& entry = *figure.entry;
      if (pictured.size() == max_pictured || !pictured.insert(&entry).second) continue;
      const Record& record = *entry.record;
      const EntrySamples samples = samples_of(entry);
      const auto numbers = numbers_of(samples);
      if (!numbers) {
        pictured.erase(&entry);
        continue;
      }
      std::string title = case_title(record);
      if (machines.size() > 1) title += " – " + machine.name;
      const std::string& unit = record.samples.unit;
      const auto count = std::max(static_cast<std::int64_t>(samples.values.size()), record.samples.count);
      table.rows.push_back(
          {{title, record.key, Tone::plain, entry.anchor()},
           quantity_cell({numbers->median}, unit),
           quantity_cell({numbers->p5}, unit),
           quantity_cell({numbers->p95}, unit),
           count_cell(count),
           count_cell(record.samples.disturbed.size(), record.samples.disturbed.empty() ? Tone::plain : Tone::warn)});
      const auto& slowed = record.samples.throttled;
      throttled.emplace_back(
          slowed ? count_cell(slowed->size(), slowed->empty() ? Tone::plain : Tone::warn) : no_cell(),
          samples.unthrottled_median ? quantity_cell({*samples.unthrottled_median}, unit) : no_cell());
      section.blocks.push_back(distribution(samples, fmt::format("distribution-{}", pictured.size()), title, unit));
      if (auto line = time_line(entry, samples, fmt::format("time-line-{}", pictured.size()), title))
        section.blocks.push_back(std::move(*line));
    }
  }
  if (table.rows.empty()) return {};
  if (std::ranges::any_of(throttled, [](const auto& cells) { return !cells.first.data.is_null(); })) {
    table.columns.push_back(right("throttled"));
    table.columns.push_back(right("unthrottled_median", "median of the others"));
    for (std::size_t i = 0; i < throttled.size(); ++i) {
      table.rows[i].push_back(std::move(throttled[i].first));
      table.rows[i].push_back(std::move(throttled[i].second));
    }
  }
  section.blocks.push_back(std::move(table));
  section.blocks.push_back(
      Text{"The cases behind the figures that matter. \"How was this measured?\" has the sample statistics of every "
           "case."});
  return {std::move(section)};
}

}  // namespace assay::report
