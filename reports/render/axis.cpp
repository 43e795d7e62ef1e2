#include "reports/render/axis.h"

#include "harness/core/units.h"
#include "reports/model/date_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

namespace {

std::string titled(const Axis& axis, const std::string& unit) {
  if (unit.empty()) return axis.title;
  return axis.title.empty() ? unit : fmt::format("{} ({})", axis.title, unit);
}

// The step of 1, 2 or 5 x 10^k that divides `span` into at most `max` pieces.
double round_step(double span, int max) {
  const double raw = span / max;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

Scale linear(const Axis& axis, double low, double high, bool from_zero) {
  if (from_zero || (low > 0 && low < 0.5 * high)) low = std::min(low, 0.0);
  if (from_zero || (high < 0 && high > 0.5 * low)) high = std::max(high, 0.0);
  if (const double size = std::max(std::abs(low), std::abs(high)); high - low <= 1e-9 * size) {
    if (size > 0) low -= 0.05 * size;
    high += size > 0 ? 0.05 * size : 1;
  }
  const double room = 0.05 * (high - low);
  if (low != 0) low -= room;
  if (high != 0) high += room;
  const DisplayUnit unit = display_unit(std::max(std::abs(low), std::abs(high)), axis.unit);
  Scale scale{titled(axis, unit.name), false, low, high, {}};
  const double step = round_step((high - low) / unit.scale, 6);
  const int places = std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12);
  const double first = std::ceil(low / unit.scale / step - 1e-9);
  for (int i = 0; i < 8; ++i) {
    const double at = (first + i) * step;
    if (at * unit.scale > high) break;
    scale.ticks.push_back({at * unit.scale, format_number(at == 0 ? 0.0 : at, places)});
  }
  return scale;
}

// Whole days, at most seven of them named.
Scale dates(const Axis& axis, double low, double high) {
  constexpr double room = 0.5, max_steps = 6;
  Scale scale{axis.title, false, std::floor(low) - room, std::ceil(high) + room, {}};
  double step = 1;
  for (const double wider : {2.0, 7.0, 14.0, 28.0, 91.0, 182.0, 364.0, 728.0, 1820.0})
    if ((high - low) / step > max_steps) step = wider;
  step = std::max(step, std::ceil((high - low) / max_steps / step) * step);
  // Counted back from the newest, which is the one to read.
  for (double at = std::floor(high); at >= low; at -= step) scale.ticks.push_back({at, axis_date(at)});
  std::ranges::reverse(scale.ticks);
  return scale;
}

Scale logarithmic(const Axis& axis, double low, double high, bool binary) {
  const double base = binary ? 2 : 10;
  const double room = std::pow(high / low, 0.03);
  low /= room;
  high *= room;
  Scale scale{axis.title, true, low, high, {}};
  const int first = static_cast<int>(std::floor(std::log(low) / std::log(base) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log(high) / std::log(base) - 1e-9));
  int step = 1;
  for (const int wider : binary ? std::vector<int>{2, 5, 10, 20, 40, 80, 160} : std::vector<int>{2, 3, 6, 12, 30, 90})
    if ((last - first) / step >= 8) step = wider;
  // With few decades, add ticks at 2 and 5.
  const std::vector<double> factors =
      !binary && last - first <= 3 ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  const int aligned = step * static_cast<int>(std::ceil(static_cast<double>(first) / step));
  for (int power = aligned; power <= last; power += step) {
    for (const double factor : factors) {
      const double at = factor * std::pow(base, power);
      if (at >= low && at <= high) scale.ticks.push_back({at, format_quantity(at, axis.unit)});
    }
  }
  return scale;
}

}  // namespace

bool drawable(const Axis& axis, double value) {
  return std::abs(value) < 1e300 && (!axis.logarithmic || value > 1e-300);
}

Scale make_scale(const Axis& axis, const std::vector<double>& values, bool from_zero) {
  if (!axis.categories.empty()) {
    Scale scale{axis.title, false, -0.5, static_cast<double>(axis.categories.size()) - 0.5, {}};
    for (std::size_t i = 0; i < axis.categories.size(); ++i)
      scale.ticks.push_back({static_cast<double>(i), axis.categories[i]});
    return scale;
  }
  double low = INFINITY, high = -INFINITY;
  bool binary = true;
  for (const double value : values) {
    if (!drawable(axis, value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
    int power = 0;
    binary = binary && std::frexp(value, &power) == 0.5;
  }
  if (low > high) return linear(axis, 0, 1, true);
  if (axis.unit == date_unit) return dates(axis, low, high);
  if (axis.logarithmic && high / low >= 5) return logarithmic(axis, low, high, binary || axis.unit == "B");
  return linear(axis, low, high, from_zero);
}

std::vector<Point> thin(const std::vector<Point>& points, std::size_t max) {
  if (points.size() <= max) return points;
  const std::size_t inner = points.size() - 2, stretches = (max - 2) / 2;
  std::vector<Point> kept = {points.front()};
  for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
    const std::size_t begin = 1 + inner * stretch / stretches, end = 1 + inner * (stretch + 1) / stretches;
    std::size_t lowest = end, highest = end;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(points[i].y)) continue;
      if (lowest == end || points[i].y < points[lowest].y) lowest = i;
      if (highest == end || points[i].y > points[highest].y) highest = i;
    }
    if (lowest == end) continue;
    kept.push_back(points[std::min(lowest, highest)]);
    if (lowest != highest) kept.push_back(points[std::max(lowest, highest)]);
  }
  kept.push_back(points.back());
  return kept;
}

std::size_t points_per_curve(const std::vector<std::size_t>& lengths, std::size_t total) {
  std::vector<std::size_t> sorted = lengths;
  std::ranges::sort(sorted);
  std::size_t left = total, curves = sorted.size();
  for (const std::size_t length : sorted) {
    if (length * curves > left) return std::max<std::size_t>(16, left / curves);
    left -= length;
    --curves;
  }
  return std::max<std::size_t>(16, sorted.empty() ? 16 : sorted.back());
}

}  // namespace assay::report
