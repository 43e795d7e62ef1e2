// Figures of the HTML page.
#include "reports/render/axis.h"
#include "reports/render/escape.h"
#include "reports/render/html_parts.h"

#include "harness/core/units.h"
#include "reports/model/date_axis.h"
#include "reports/model/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {

namespace {

Json scale_json(const Axis& axis, const Scale& scale) {
  Json ticks = Json::array();
  for (const Tick& tick : scale.ticks) ticks.push_back({tick.at, printable(tick.label)});
  return {
      {"title", printable(scale.title)}, {"log", scale.logarithmic},         {"low", scale.low}, {"high", scale.high},
      {"ticks", std::move(ticks)},       {"names", !axis.categories.empty()}};
}

std::string text_of(const Axis& axis, double value, std::optional<double> half = std::nullopt) {
  if (axis.unit == date_unit) return axis_date(value);
  if (axis.categories.empty()) return format_quantity(value, axis.unit, half);
  const bool known = value >= 0 && value < static_cast<double>(axis.categories.size());
  return known ? axis.categories[static_cast<std::size_t>(value)] : "?";
}

void value_cell(std::string& out, const Axis& axis, double value, const std::string& text) {
  out += drawable(axis, value) ? "<td data-v=" + short_number(value) + ">" : "<td>";
  out += html_escape(text);
}

// Columns besides x and y.
struct Columns {
  bool range = false;
  bool label = false;
  int count() const { return 2 + range + label; }
};

void point_row(std::string& out, const Figure& figure, const Point& point, Columns columns) {
  out += "<tr>";
  value_cell(out, figure.x, point.x, text_of(figure.x, point.x));
  const auto half = half_width({point.y, point.range});
  value_cell(out, figure.y, point.y, text_of(figure.y, point.y, half));
  if (columns.range) {
    if (point.range && drawable({}, point.range->low) && drawable(figure.y, point.range->high))
      out += fmt::format("<td data-v={} data-w={}>{} – {}", short_number(point.range->low),
                         short_number(point.range->high), html_escape(text_of(figure.y, point.range->low, half)),
                         html_escape(text_of(figure.y, point.range->high, half)));
    else
      out += "<td>–";
  }
  if (columns.label) out += "<td>" + html_escape(point.label);
  out += '\n';
}

// The values that decide the scale of y: as shown_values(), by ratios on a logarithmic axis.
std::vector<double> scaled_values(const Axis& axis, std::vector<Estimate> figures, bool from_zero) {
  if (!axis.logarithmic) return shown_values(figures, from_zero);
  const auto log = [](double value) { return value > 0 ? std::log(value) : -HUGE_VAL; };
  for (Estimate& one : figures) {
    one.value = log(one.value);
    if (one.interval) one.interval = Interval{log(one.interval->low), log(one.interval->high)};
  }
  std::vector<double> values = shown_values(figures, false);
  for (double& value : values) value = std::exp(value);
  return values;
}

std::string column_title(const Axis& axis, const char* otherwise) {
  return html_escape(axis.title.empty() ? otherwise : axis.title);
}

}  // namespace

void figure_html(std::string& out, const Figure& figure, std::size_t max_points, Ids& ids) {
  std::vector<double> xs;
  std::vector<Estimate> figures;
  Columns columns;
  bool bars = false, all_bars = true;
  Json curves = Json::array();
  std::vector<std::vector<Point>> drawn;
  std::size_t count = 0, shown = 0;
  for (const Curve& curve : figure.curves) {
    bars = bars || curve.mark == Mark::bars;
    all_bars = all_bars && curve.mark == Mark::bars;
    curves.push_back({{"name", printable(curve.name)}, {"mark", name_of(curve.mark)}, {"reference", curve.reference}});
    drawn.push_back(thin(curve.points, max_points));
    count += curve.points.size();
    shown += drawn.back().size();
    for (const Point& point : drawn.back()) {
      xs.push_back(point.x);
      if (drawable(figure.y, point.y)) figures.push_back({point.y, point.range});
      columns.range = columns.range || point.range;
      columns.label = columns.label || !point.label.empty();
    }
  }
  std::size_t longest = 0;
  for (const std::string& name : figure.x.categories)
    longest = std::max<std::size_t>(longest, static_cast<std::size_t>(display_width(printable(name))));
  // Long names fit next to horizontal bars.
  const bool lying = longest > 8 || figure.x.categories.size() > 10;
  const Json chart = {
      {"x", scale_json(figure.x, make_scale(figure.x, xs, false))},
      {"y", scale_json(figure.y, make_scale(figure.y, scaled_values(figure.y, std::move(figures), bars), bars))},
      {"curves", std::move(curves)},
      {"lying", lying}};
  out += fmt::format("<figure{}>\n<figcaption>{}</figcaption>\n", ids.attribute(figure.id), html_escape(figure.title));
  out += fmt::format("<div class=\"plot{}\"><canvas role=img aria-label=\"{}\" data-chart=\"{}\"></canvas></div>\n",
                     all_bars ? " low" : "", html_escape(figure.alt.empty() ? figure.title : figure.alt),
                     html_escape(chart.dump(-1, ' ', false, Json::error_handler_t::replace)));
  out += "<details open><summary>";
  out += count == 1 ? "The figure of this picture" : "The figures of this picture";
  if (shown < count)
    out += fmt::format(": {} of {}, the lowest and highest of each stretch",
                       format_number(static_cast<double>(shown), 0), format_number(static_cast<double>(count), 0));
  out +=
      fmt::format("</summary>\n<div class=box role=region tabindex=0 aria-label=figures>\n<table class=\"r1 r2{}\">\n",
                  columns.range ? " r3" : "");
  out += fmt::format("<thead><tr><th scope=col>{}<th scope=col>{}", column_title(figure.x, "x"),
                     column_title(figure.y, "y"));
  if (columns.range) out += "<th scope=col>interval";
  if (columns.label) out += "<th scope=col>point";
  for (std::size_t curve = 0; curve < drawn.size(); ++curve) {
    out += "\n<tbody>\n";
    if (drawn.size() > 1)
      out += fmt::format("<tr><th colspan={}>{}\n", columns.count(), html_escape(figure.curves[curve].name));
    for (const Point& point : drawn[curve]) point_row(out, figure, point, columns);
  }
  out += "</table>\n</div>\n</details>\n</figure>\n";
}

}  // namespace assay::report
