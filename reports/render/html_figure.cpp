// Figures of the HTML page.
#include "reports/render/axis.h"
#include "reports/render/escape.h"
#include "reports/render/html_parts.h"

#include "harness/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace assay::report {

namespace {

const char* name_of(Mark mark) {
  switch (mark) {
    case Mark::line: return "line";
    case Mark::points: return "points";
    case Mark::line_and_points: return "both";
    case Mark::bars: break;
  }
  return "bars";
}

Json scale_json(const Axis& axis, const Scale& scale) {
  Json ticks = Json::array();
  for (const Tick& tick : scale.ticks) ticks.push_back({tick.at, printable(tick.label)});
  return {
      {"title", printable(scale.title)}, {"log", scale.logarithmic},         {"low", scale.low}, {"high", scale.high},
      {"ticks", std::move(ticks)},       {"names", !axis.categories.empty()}};
}

std::optional<double> half_width(const Point& point) {
  if (!point.range) return std::nullopt;
  return std::max(point.range->high - point.y, point.y - point.range->low);
}

std::string text_of(const Axis& axis, double value, std::optional<double> half = std::nullopt) {
  if (axis.categories.empty()) return format_quantity(value, axis.unit, half);
  const bool known = value >= 0 && value < static_cast<double>(axis.categories.size());
  return known ? axis.categories[static_cast<std::size_t>(value)] : "?";
}

void value_cell(std::string& out, const Axis& axis, double value, const std::string& text) {
  out += drawable(axis, value) ? fmt::format("<td data-v=\"{:.6g}\">", value) : std::string("<td>");
  out += html_escape(text) + "</td>";
}

// Which columns the data need besides x and y.
struct Columns {
  bool curve = false;
  bool range = false;
  bool label = false;
};

void point_row(std::string& out, const Figure& figure, std::size_t curve, const Point& point, Columns columns) {
  if (columns.curve)
    out += fmt::format("<tr data-c=\"{}\"><th>{}</th>", curve, html_escape(figure.curves[curve].name));
  else
    out += "<tr>";
  value_cell(out, figure.x, point.x, text_of(figure.x, point.x));
  const auto half = half_width(point);
  value_cell(out, figure.y, point.y, text_of(figure.y, point.y, half));
  if (columns.range) {
    if (point.range && drawable(figure.y, point.range->low) && drawable(figure.y, point.range->high))
      out += fmt::format("<td data-v=\"{:.6g}\" data-w=\"{:.6g}\">{} – {}</td>", point.range->low, point.range->high,
                         html_escape(text_of(figure.y, point.range->low, half)),
                         html_escape(text_of(figure.y, point.range->high, half)));
    else
      out += "<td>–</td>";
  }
  if (columns.label) out += fmt::format("<td class=\"l\">{}</td>", html_escape(point.label));
  out += "</tr>\n";
}

std::string column_title(const Axis& axis, const char* otherwise) {
  return html_escape(axis.title.empty() ? otherwise : axis.title);
}

}  // namespace

void figure_html(std::string& out, const Figure& figure, std::size_t most_points, Ids& ids) {
  std::vector<double> xs, ys;
  Columns columns{.curve = figure.curves.size() > 1};
  bool bars = false;
  Json curves = Json::array();
  std::vector<std::vector<Point>> drawn;
  std::size_t count = 0, shown = 0;
  for (const Curve& curve : figure.curves) {
    bars = bars || curve.mark == Mark::bars;
    curves.push_back({{"name", printable(curve.name)}, {"mark", name_of(curve.mark)}, {"reference", curve.reference}});
    drawn.push_back(thin(curve.points, most_points));
    count += curve.points.size();
    shown += drawn.back().size();
    for (const Point& point : drawn.back()) {
      xs.push_back(point.x);
      ys.push_back(point.y);
      if (point.range) ys.insert(ys.end(), {point.range->low, point.range->high});
      columns.range = columns.range || point.range;
      columns.label = columns.label || !point.label.empty();
    }
  }
  std::size_t longest = 0;
  for (const std::string& name : figure.x.categories)
    longest = std::max<std::size_t>(longest, static_cast<std::size_t>(display_width(printable(name))));
  // Long names are read beside lying bars.
  const bool lying = longest > 8 || figure.x.categories.size() > 10;
  const Json chart = {{"x", scale_json(figure.x, make_scale(figure.x, xs, false))},
                      {"y", scale_json(figure.y, make_scale(figure.y, ys, bars))},
                      {"curves", std::move(curves)},
                      {"lying", lying}};
  out += fmt::format("<figure{}>\n<figcaption>{}</figcaption>\n", ids.attribute(figure.id), html_escape(figure.title));
  out += fmt::format("<div class=\"plot\"><canvas role=\"img\" aria-label=\"{}\" data-chart=\"{}\"></canvas></div>\n",
                     html_escape(figure.alt.empty() ? figure.title : figure.alt),
                     html_escape(chart.dump(-1, ' ', false, Json::error_handler_t::replace)));
  out +=
      fmt::format("<details open><summary>{} of this picture{}</summary>\n", count == 1 ? "The figure" : "The figures",
                  shown == count ? ""
                                 : fmt::format(": {} of {}, the lowest and the highest of each stretch",
                                               format_number(static_cast<double>(shown), 0),
                                               format_number(static_cast<double>(count), 0)));
  out +=
      "<div class=\"box\" role=\"region\" tabindex=\"0\" aria-label=\"figures of the picture\">\n<table>\n<thead><tr>";
  if (columns.curve) out += "<th scope=\"col\" class=\"l\">curve</th>";
  out += fmt::format("<th scope=\"col\">{}</th><th scope=\"col\">{}</th>", column_title(figure.x, "x"),
                     column_title(figure.y, "y"));
  if (columns.range) out += "<th scope=\"col\">interval</th>";
  if (columns.label) out += "<th scope=\"col\" class=\"l\">point</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t curve = 0; curve < drawn.size(); ++curve)
    for (const Point& point : drawn[curve]) point_row(out, figure, curve, point, columns);
  out += "</tbody>\n</table>\n</div>\n</details>\n</figure>\n";
}

}  // namespace assay::report
